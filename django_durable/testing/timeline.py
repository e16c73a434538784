"""When something happens next: to which moment the kit may move the clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django_durable.authoring.gathering import is_held
from django_durable.authoring.registry import served_hashes
from django_durable.clock import read_now
from django_durable.dispatch.flow_queue import refresh
from django_durable.engine.transitions.admission import rooms_of
from django_durable.models import DispatchHint, Execution, GatheredEvent, Schedule
from django_durable.models.execution import ACTIVE
from django_durable.operators.schedules.declaring import is_mine, may_be_fired
from django_durable.planes.registry import alias_of
from django_durable.testing.places import usable_databases

Skip = Literal["sleeps", "all"] | None
PAGE = 200


def check_skip(skip: object) -> None:
    """Refuse anything but the three ways. Raises ``ValueError``."""
    if skip not in ("sleeps", "all", None):
        raise ValueError(f'skip must be "sleeps", "all" or None, not {skip!r}')


def next_moment(using: str, skip: Skip, since: datetime) -> datetime | None:
    """The earliest thing that was still to come at ``since``, where the clock may move at all; else ``None``.

    With ``"sleeps"`` it may move while something sleeps: a sleep, a retry delay, a start for later. There is one
    clock, so what falls due on the way there happens on the way, in order. With ``"all"`` the timeout of a wait
    and a deadline are reason enough. What is paused, blocked or held by a worker is none.
    """
    if skip is None:
        return None
    others = (next_opening(using), next_gathered(since))
    first: datetime | None = None
    for row, due_at in _to_come(using, since):
        first = first or due_at
        if skip == "all" or _sleeps(row):
            return earliest(first, *others)
    return earliest(*others)


def earliest(*moments: datetime | None) -> datetime | None:
    """The first of those that there are."""
    return min((moment for moment in moments if moment is not None), default=None)


def next_gathered(since: datetime) -> datetime | None:
    """When events that have gathered start their run next; not those that wait for the end of another run."""
    moments = []
    for alias in usable_databases():
        rows = GatheredEvent.objects.using(alias).filter(due_at__gt=since).order_by("due_at")
        moments += [row.due_at for row in rows if not is_held(alias, row)][:1]
    return min(moments, default=None)


def nothing_is_live(databases: Iterable[str]) -> bool:
    """Whether every execution has ended: then no wait and no lease can run out while the clock moves."""
    return not any(Execution._base_manager.using(using).filter(status__in=ACTIVE).exists() for using in databases)


def schedules_ahead(databases: Iterable[str]) -> list[datetime]:
    """When each schedule that this code may fire falls due next; what is paused is none."""
    rows = (
        row for using in databases for row in Schedule.objects.using(using).filter(may_be_fired(), paused_at=None)
    )
    return sorted(row.due_at for row in rows if is_mine(row))


def next_opening(using: str) -> datetime | None:
    """When a queue whose rate is used up, and in which something is due, admits the next start."""
    now = read_now(using)
    # A rate that has room by now had none at the last claim.
    opening = {
        room.name: room.opens_at or now
        for room in rooms_of(using, refresh(using))
        if room.starts is not None and not room.closed
    }
    ready = DispatchHint.objects.using(using).filter(state=DispatchHint.State.LIVE, due_at__lte=now, token=None)
    waits = ready.filter(queue__in=opening, definition__in=served_hashes()).values_list("queue", flat=True)
    return min((opening[queue] for queue in set(waits)), default=None)


def _to_come(using: str, since: datetime) -> Iterator[tuple[Mapping[str, Any], datetime]]:
    hints = DispatchHint.objects.using(using).filter(state=DispatchHint.State.LIVE, token=None, due_at__gt=since)
    ordered = hints.order_by("due_at", "id").values_list("execution_id", "due_at", "kind", "plane")
    start = 0
    while page := list(ordered[start : start + PAGE]):
        rows: dict[UUID, Mapping[str, Any]] = {}
        for plane in {plane for _id, _due_at, _kind, plane in page}:
            rows |= _rows(plane, [execution_id for execution_id, _due_at, _kind, on in page if on == plane])
        for execution_id, due_at, kind, _plane in page:
            row = rows.get(execution_id)
            if row is not None and kind == DispatchHint.Kind.STEP:
                yield {**row, "status": "pending"}, due_at  # the next attempt of a step elsewhere
            elif row is not None and row["status"] in ("pending", "waiting", "compensating"):
                yield row, due_at
        start += PAGE


def _rows(plane: str, ids: list[UUID]) -> dict[UUID, Mapping[str, Any]]:
    found = Execution._base_manager.using(alias_of(plane)).filter(pk__in=ids)
    return {row["id"]: row for row in found.values("id", "status", "awaiting", "wake_at")}


def _sleeps(row: Mapping[str, Any]) -> bool:
    """Whether an execution waits for a time and for nothing else."""
    if row["status"] != "waiting":
        return True
    return row["awaiting"] in ("", "[]") and row["wake_at"] is not None
