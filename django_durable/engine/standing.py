"""The intent that an execution's state stands for: what a lost hint is rebuilt from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, models

from django_durable.clock import sql_after
from django_durable.conf import config
from django_durable.dispatch.hints import Intent
from django_durable.engine.transitions import wants_results
from django_durable.models import Checkpoint, DispatchHint
from django_durable.models.execution import TERMINAL
from django_durable.sql import Sql


def standing_intent(plane: str, row: Mapping[str, Any]) -> Intent | None:
    """The intent of a locked row; ``None`` where it has ended, or awaits a message or an operator."""
    status: str = row["status"]
    due_at: datetime | Sql | None = None
    more: dict[str, Any] = {}
    if status in TERMINAL or (status == "pending" and row["in_line"]):
        return None
    if status in ("waiting", "paused"):
        times = [moment for moment in (row["wake_at"], row["deadline"]) if moment is not None]
        if not times:
            return None
        due_at = min(times)
    elif status == "blocked":
        more = {"state": DispatchHint.State.BLOCKED, "avoid": row["blocked_by"]}
    elif row["lease_token"] is not None:
        # Its lease went with the hint; whoever still runs it finds that out at its next renewal.
        due_at = sql_after(connections[plane], config().lease_seconds)
    else:
        due_at = row["wake_at"]
    return Intent(
        execution_id=row["id"],
        workflow=row["workflow"],
        version=row["version"],
        revision=row["revision"],
        epoch=row["epoch"],
        queue=row["queue"],
        priority=row["priority"],
        tenant=row["tenant"],
        opening=row["started_at"] is None,
        due_at=due_at,
        **more,
    )


def standing_steps(plane: str, row: Mapping[str, Any]) -> list[Intent]:
    """The intents of what a locked row has running elsewhere, one for each attempt that has not ended."""
    if not wants_results(row):
        return []
    lapse = sql_after(connections[plane], config().lease_seconds)
    return [
        # One that is under way had a lease, which went with its hint.
        step_intent(row, c.position, c.item, c.attempt + 1, c.queue, lapse if c.begun > c.attempt else c.wake_at)
        for c in dispatched(plane, [row["id"]])
    ]


def dispatched(plane: str, execution_ids: Sequence[UUID]) -> models.QuerySet[Checkpoint]:
    """The steps that these executions have running elsewhere."""
    rows = Checkpoint.objects.using(plane).filter(execution_id__in=execution_ids, status="pending", kind="step")
    return rows.exclude(queued_at=None).order_by("execution_id", "position", "item")


def step_intent(
    row: Mapping[str, Any], position: int, item: int, attempt: int, queue: str, due_at: Any = None
) -> Intent:
    """The intent to run one attempt of a step elsewhere."""
    return Intent(
        execution_id=row["id"],
        workflow=row["workflow"],
        version=row["version"],
        revision=attempt,
        epoch=row["epoch"],
        queue=queue or row["queue"],
        priority=row["priority"],
        tenant=row["tenant"],
        opening=True,
        due_at=due_at,
        kind=DispatchHint.Kind.STEP,
        position=position,
        item=item,
    )
