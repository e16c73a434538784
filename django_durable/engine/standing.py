"""The intent that an execution's state stands for: what a lost hint is rebuilt from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connections

from django_durable.clock import sql_after
from django_durable.conf import config
from django_durable.dispatch.hints import Intent
from django_durable.models import DispatchHint
from django_durable.models.execution import TERMINAL
from django_durable.sql import Sql


def standing_intent(plane: str, row: Mapping[str, Any]) -> Intent | None:
    """The intent of a locked row; ``None`` where it has ended, or awaits a message or an operator."""
    status: str = row["status"]
    due_at: datetime | Sql | None = None
    more: dict[str, Any] = {}
    if status in TERMINAL:
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
        due_at=due_at,
        **more,
    )
