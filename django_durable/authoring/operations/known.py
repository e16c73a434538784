"""Known: what a workflow knows about its own run."""

from __future__ import annotations

import logging
import uuid
from collections.abc import MutableMapping
from datetime import datetime
from typing import Any

from django_durable.authoring.operations.base import Base
from django_durable.engine.session import Session


class Known(Base):
    """Attributes; none of them takes a position."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.log: logging.LoggerAdapter[logging.Logger] = ReplayAwareLog(session)

    @property
    def id(self) -> uuid.UUID:
        """The execution's id."""
        return self._session.claim.id

    @property
    def key(self) -> str | None:
        """The key it was started with."""
        key: str | None = self._row["key"]
        return key

    @property
    def run(self) -> int:
        """The number of this run in its chain, from 1."""
        return int(self._row["run"])

    @property
    def tenant(self) -> str:
        """The tenant, ``''`` for none."""
        return str(self._row["tenant"])

    @property
    def version(self) -> str:
        """The workflow's version that this run keeps."""
        return str(self._row["version"])

    @property
    def turn(self) -> int:
        """A number that grows with every intent of this execution; not a position, not for branching."""
        return int(self._row["revision"])

    @property
    def is_replaying(self) -> bool:
        """Whether the next operation is answered from the history."""
        return self._session.replaying

    @property
    def scheduled_for(self) -> datetime | None:
        """The nominal time for which a schedule started the run; ``None`` for every other start.

        Not the time at which it was started, which may be later. The runs of a chain and forks have it too.
        """
        moment: datetime | None = self._row["scheduled_for"]
        return moment

    @property
    def history_size(self) -> int:
        """How many positions have been taken so far."""
        return self._session.position


class ReplayAwareLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that is silent while the body only repeats what it did before."""

    def __init__(self, session: Session) -> None:
        super().__init__(logging.getLogger(f"django_durable.workflow.{session.claim.row['workflow']}"), {})
        self._session = session

    def isEnabledFor(self, level: int) -> bool:
        """Whether a line of this level is written now."""
        return not self._session.replaying and super().isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Say which execution speaks."""
        return f"[{self._session.claim.id}] {msg}", kwargs
