"""The liveness rule as a query of the tests' own: what is not over has somebody, or some time, to go on by.

Written apart from ``doctor``'s query on purpose, and stricter: a due time must be a hint's, and no message that
is awaited may lie there unread.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import connections

from django_durable.models import Execution, Message
from django_durable.models.execution import TERMINAL
from django_durable.operators.doctor.liveness import liveness_violations

__all__ = ["violations"]

LIVE, BLOCKED = 0, 1

QUERY = """
    SELECT e.id, e.workflow, e.status, e.lease_token IS NOT NULL, e.worker, e.awaiting,
        e.wake_at IS NOT NULL, e.wake_at IS NOT NULL OR e.deadline IS NOT NULL,
        h.state, h.revision = e.revision AND h.epoch = e.epoch,
        h.token IS NOT NULL OR ((e.wake_at IS NULL OR h.due_at <= e.wake_at)
            AND (e.deadline IS NULL OR h.due_at <= e.deadline))
    FROM django_durable_execution e LEFT JOIN django_durable_dispatchhint h ON h.execution_id = e.id
    WHERE e.finished_at IS NULL OR h.id IS NOT NULL OR e.status NOT IN
        ('completed', 'continued', 'failed', 'cancelled', 'timed_out', 'dead')
"""


def violations(using: str = "default") -> list[str]:
    """Every execution that is not over without lease, due time or awaited message, and hints of what is over."""
    with connections[using].cursor() as cursor:
        cursor.execute(QUERY)
        rows = cursor.fetchall()
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[:8], []).append(row[8:])
    return [
        f"{execution[1]} is {execution[2]}: {what}"
        for execution, hints in found.items()
        for what in _complaints(using, execution, hints)
    ]


def doctors_violations(using: str = "default") -> list[str]:
    """What ``doctor`` says of the same."""
    return [f"doctor finds {execution_id}" for execution_id in liveness_violations(using)]


def _complaints(using: str, execution: tuple[Any, ...], hints: list[tuple[Any, ...]]) -> list[str]:
    _id, _workflow, status, leased, worker, awaiting, timed, due = execution
    if status in TERMINAL:
        return ["it is over, and a hint is left"] if hints[0][0] is not None else ["it is over without an end time"]
    if leased != (status in ("running", "compensating") and worker != ""):
        return [f"lease {leased}, worker {worker!r}"]
    current = {(state, bool(in_time)) for state, same, in_time in hints if same}
    states = {state for state, _in_time in current}
    if status in ("pending", "running", "compensating"):
        return [] if LIVE in states else ["it has no live hint"]
    if status == "blocked":
        return [] if BLOCKED in states else ["it has no blocked hint"]
    if due and (LIVE, True) not in current:
        return ["it has a due time and no hint says so"]
    return _waiting_complaints(using, awaiting, timed) if status == "waiting" else []


def _waiting_complaints(using: str, awaiting: str, timed: bool) -> list[str]:
    channels = json.loads(awaiting or "[]")
    if not channels:
        return [] if timed else ["it waits for nothing"]
    waiting = Execution.objects.using(using).filter(status="waiting", awaiting=awaiting).values("pk")
    unread = Message.objects.using(using).filter(
        execution_id__in=waiting, channel__in=channels, consumed_by__isnull=True
    )
    return ["it waits for a message that is there"] if unread.exists() else []
