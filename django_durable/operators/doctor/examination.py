"""The examination: every check, in the order in which a person should read what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from django_durable.operators.doctor.adrift import hints_adrift
from django_durable.operators.doctor.code import changed_sources
from django_durable.operators.doctor.finding import Finding
from django_durable.operators.doctor.gathered import waiting_events
from django_durable.operators.doctor.liveness import lost_executions, running_without_hint
from django_durable.operators.doctor.planes import (
    closed_with_work,
    lagging_migrations,
    misplaced_tenants,
    unfinished_moves,
    unreachable_plane,
)
from django_durable.operators.doctor.queued import lapsed_leases, overdue_work, parked_hints
from django_durable.operators.doctor.scene import Scene
from django_durable.operators.doctor.schedules import (
    failing_schedules,
    overdue_schedules,
    undeclared_schedules,
)
from django_durable.operators.doctor.surroundings import (
    blocked_executions,
    missing_tick,
    old_snapshot,
    stranded_outbox,
)

__all__ = ["CHECKS", "examine"]

CHECKS: Final[tuple[Callable[[Scene], Iterator[Finding]], ...]] = (
    lagging_migrations,
    lost_executions,
    running_without_hint,
    lapsed_leases,
    overdue_work,
    missing_tick,
    stranded_outbox,
    parked_hints,
    blocked_executions,
    changed_sources,
    overdue_schedules,
    failing_schedules,
    undeclared_schedules,
    waiting_events,
    hints_adrift,
    unfinished_moves,
    misplaced_tenants,
    closed_with_work,
    old_snapshot,
)


def examine() -> list[Finding]:
    """Everything that is wrong on the spine and on every plane; empty on a healthy system. It only reads.

    A plane that gives no answer is one finding, whatever else may be wrong there; the others are looked at.
    Raises the database's error where the spine cannot be reached.
    """
    scene = Scene()
    found = [finding for check in CHECKS for finding in check(scene)]
    silent = {away.place.label for away in scene.away}
    return [
        *(unreachable_plane(away) for away in scene.away),
        *(finding for finding in found if finding.plane not in silent),
    ]
