"""Retention: which executions have been kept for long enough, read in the order in which they ended.

What goes is a *tree*: a root with all its descendants. The root decides: its workflow and status give the period,
which counts from the last end in the tree. This module reads; ``transitions.prune`` removes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from uuid import UUID

from django.db.models import Q

from django_durable.conf import config
from django_durable.models import Execution
from django_durable.models.execution import TERMINAL

__all__ = ["Ended", "Terms", "ended_pages"]

PAGE = 200
"""Ended executions that are read at a time."""

COLUMNS = ("id", "finished_at", "root_id", "chain_id", "run", "workflow", "status", "tenant")
Position = tuple[datetime, UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A root that has ended, and what decides about its tree."""

    id: UUID
    finished_at: datetime
    root_id: UUID
    chain_id: UUID
    run: int
    workflow: str
    status: str
    tenant: str

    @property
    def is_root(self) -> bool:
        """Whether it is a tree's root; any other goes with its own."""
        return self.root_id == self.id

    @property
    def is_kept_for_its_chain(self) -> bool:
        """The first run of a chain: its input is what later starts of the key are compared with."""
        return self.run == 1 and self.status == "continued"

    @property
    def ends_chain(self) -> bool:
        """The last run of a chain of several: the first one goes with it."""
        return self.run > 1 and self.status != "continued"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What may go: by the setting's periods, or by one period that a person names, among what the filters leave."""

    periods: Mapping[str, timedelta | None]
    older_than: timedelta | None = None
    workflow: str = ""
    """A name, or a pattern."""
    statuses: Sequence[str] = TERMINAL
    tenant: str | None = None
    open_letters: bool = False
    """Whether a tree goes with its open dead letters: a person's decision, never the tick's."""

    @classmethod
    def of_settings(cls) -> Terms:
        """``RETENTION`` as it stands."""
        return cls(periods=config().retention)

    def period(self, workflow: str, status: str) -> timedelta | None:
        """How long such an execution is kept; ``None``: for ever. A workflow's name beats a pattern, that a status.

        Of several patterns that fit the longest decides.
        """
        if self.older_than is not None:
            return self.older_than
        fitting = [key for key in self.periods if key not in TERMINAL and fnmatchcase(workflow, key)]
        chosen = max(fitting, key=lambda key: (key == workflow, len(key)), default=status)
        return self.periods.get(chosen)

    def shortest(self) -> timedelta | None:
        """No execution that ended later can go; ``None``: none at all."""
        given = [self.older_than] if self.older_than is not None else self.periods.values()
        return min((period for period in given if period is not None), default=None)

    def wants(self, ended: Ended, now: datetime) -> bool:
        """Whether this root passes the filters and is old enough."""
        if self.workflow and not fnmatchcase(ended.workflow, self.workflow):
            return False
        if ended.status not in self.statuses or self.tenant not in (None, ended.tenant):
            return False
        period = self.period(ended.workflow, ended.status)
        return period is not None and ended.finished_at <= now - period


def ended_pages(using: str, terms: Terms, now: datetime, after: Position | None) -> Iterator[list[Ended]]:
    """Executions that ended before the shortest period, the oldest first, a page at a time, from a position on."""
    shortest = terms.shortest()
    if shortest is None:
        return
    rows = Execution._base_manager.using(using).filter(finished_at__lte=now - shortest)
    while True:
        later = rows if after is None else rows.filter(_behind(after), finished_at__gte=after[0])
        found = later.order_by("finished_at", "pk").values(*COLUMNS)[:PAGE]
        page = [Ended(**row) for row in found]
        if page:
            yield page
        if len(page) < PAGE:
            return
        after = (page[-1].finished_at, page[-1].id)


def _behind(after: Position) -> Q:
    return Q(finished_at__gt=after[0]) | Q(pk__gt=after[1])
