"""What a schedule's row says: its timing, and when each nominal time falls due."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django_durable.authoring.schedule import Policy
from django_durable.authoring.timing import Timing
from django_durable.models import Schedule

__all__ = ["due_of", "next_columns", "policy_columns", "timing_columns", "timing_in"]


def timing_in(row: Schedule) -> Timing:
    """The nominal times of a row."""
    return Timing(cron=row.cron, timezone=row.timezone, every=row.every_seconds, anchor=row.anchor_at)


def timing_columns(timing: Timing) -> dict[str, Any]:
    """A timing as the row has it, without its anchor."""
    return {"cron": timing.cron, "timezone": timing.timezone, "every_seconds": timing.every}


def policy_columns(policy: Policy) -> dict[str, Any]:
    """The policies as the row has them."""
    return {
        "overlap": policy.overlap,
        "catch_up": policy.catch_up,
        "catch_up_most": policy.catch_up_most,
        "jitter_seconds": policy.jitter,
    }


def due_of(schedule: Schedule, nominal_at: datetime) -> datetime:
    """When this time falls due: later by its jitter, which is the same whoever asks."""
    return nominal_at + delay_of(f"{schedule.tenant}\x00{schedule.name}", schedule.jitter_seconds, nominal_at)


def delay_of(identity: str, jitter: float, nominal_at: datetime) -> timedelta:
    if not jitter:
        return timedelta()
    digest = hashlib.sha256(f"{identity}\x00{nominal_at.timestamp()}".encode()).digest()
    return timedelta(seconds=jitter * int.from_bytes(digest[:6], "big") / 2**48)


def next_columns(schedule: Schedule, next_at: datetime) -> dict[str, Any]:
    """The pointer to the first time that is not decided."""
    return {"next_at": next_at, "due_at": due_of(schedule, next_at)}
