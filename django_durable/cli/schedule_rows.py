"""How schedules and their fires are shown. Arguments are not: they are values."""

from __future__ import annotations

from typing import Any, Final

from django_durable.models import Schedule, ScheduleFire
from django_durable.operators.schedules.declaring import is_mine

__all__ = ["FIRE_COLUMNS", "SCHEDULE_COLUMNS", "fire_row", "schedule_row"]

SCHEDULE_COLUMNS: Final = ("name", "tenant", "workflow", "when", "state", "next_at", "last_at", "last_outcome")
FIRE_COLUMNS: Final = ("nominal_at", "outcome", "reason", "late_seconds", "execution", "actor", "error")


def schedule_row(row: Schedule) -> dict[str, Any]:
    """One schedule. ``state``: active, paused, or undeclared where this code has no such declaration any more."""
    state = "paused" if row.is_paused else "active" if is_mine(row) else "undeclared"
    most = f":{row.catch_up_most}" if row.catch_up == "all" else ""
    return {
        "id": row.pk,
        "name": row.name,
        "tenant": row.tenant,
        "workflow": row.workflow,
        "when": f"{row.cron} {row.timezone}" if row.cron else f"every {row.every_seconds:g} s",
        "state": state,
        "overlap": row.overlap,
        "catch_up": f"{row.catch_up}{most}",
        "jitter": row.jitter_seconds,
        "declared": bool(row.declared),
        "next_at": row.next_at,
        "last_at": row.last_at,
        "last_outcome": row.last_outcome,
        "paused_at": row.paused_at,
        "paused_by": row.paused_by,
    }


def fire_row(fire: ScheduleFire) -> dict[str, Any]:
    """What became of one time, or of all those up to ``through_at``."""
    return {
        "id": fire.pk,
        "nominal_at": fire.nominal_at,
        "through_at": fire.through_at,
        "outcome": fire.outcome,
        "reason": fire.reason,
        "late_seconds": round(fire.late_seconds, 3),
        "decided_at": fire.decided_at,
        "execution": fire.execution_id,
        "actor": fire.actor,
        "error": fire.error,
    }
