"""Claimed: what a worker holds after a claim, and all that a turn needs to know of its execution."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django_durable.dispatch.hints import Intent

COLUMNS = (
    "id",
    "tenant",
    "workflow",
    "version",
    "source_digest",
    "key",
    "run",
    "chain_id",
    "queue",
    "priority",
    "correlation_id",
    "parent_id",
    "parent_position",
    "parent_item",
    "root_id",
    "status",
    "revision",
    "epoch",
    "recoveries",
    "run_after",
    "scheduled_for",
    "deadline",
    "seed",
    "budget",
    "fork_position",
    "encoded_input",
    "pause_requested_at",
    "singleton",
)
"""The columns that a claim returns, in this order."""


@dataclass(slots=True, kw_only=True)
class Claimed:
    """One execution under one token. ``read_at`` is the plane's clock when it was claimed."""

    using: str
    hint_id: UUID
    token: UUID
    worker: str
    row: dict[str, Any]
    read_at: datetime
    lease_seconds: float
    # Taken before the claim's statement was sent, so the local end of the lease is never later than the real one.
    sent_at: float
    received_at: float = field(default_factory=time.monotonic)
    # While undo steps run: they are recorded whatever the run is to end as.
    undoing: bool = False

    @property
    def id(self) -> UUID:
        """The execution's id."""
        execution_id: UUID = self.row["id"]
        return execution_id

    def now(self) -> datetime:
        """The plane's clock, carried forward by this process's monotonic one: no statement, no wall clock."""
        return self.read_at + timedelta(seconds=time.monotonic() - self.received_at)

    def intent(self, *, due_at: datetime | None = None, revision: int | None = None, **more: Any) -> Intent:
        """The next intent of this execution; a due time never lies behind the deadline."""
        deadline = self.row["deadline"]
        if due_at is not None and deadline is not None:
            due_at = min(due_at, deadline)
        return Intent(
            execution_id=self.id,
            workflow=self.row["workflow"],
            version=self.row["version"],
            revision=self.row["revision"] + 1 if revision is None else revision,
            epoch=self.row["epoch"],
            queue=self.row["queue"],
            priority=self.row["priority"],
            tenant=self.row["tenant"],
            due_at=due_at,
            **more,
        )


def as_utc(moment: datetime) -> datetime:
    """An aware time in UTC, whatever zone the session of the connection has."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
