"""The examination: every check, in the order in which a person should read what they find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django_durable.operators.doctor.code import changed_sources
from django_durable.operators.doctor.finding import Finding
from django_durable.operators.doctor.liveness import lost_executions, running_without_hint
from django_durable.operators.doctor.queued import dangling_hints, lapsed_leases, overdue_work, parked_hints
from django_durable.operators.doctor.surroundings import (
    blocked_executions,
    missing_tick,
    old_snapshot,
    stranded_outbox,
)

__all__ = ["CHECKS", "examine"]

CHECKS: Final[tuple[Callable[[str], Finding | None], ...]] = (
    lost_executions,
    running_without_hint,
    lapsed_leases,
    overdue_work,
    missing_tick,
    stranded_outbox,
    parked_hints,
    blocked_executions,
    changed_sources,
    dangling_hints,
    old_snapshot,
)


def examine(using: str) -> list[Finding]:
    """Everything that is wrong on one database; empty on a healthy system. It only reads."""
    found = (check(using) for check in CHECKS)
    return [finding for finding in found if finding is not None]
