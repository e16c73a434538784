"""The liveness rule as a query of the tests' own: what is not over has somebody, or some time, to go on by."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django_durable.models import DispatchHint, Execution, Message
from django_durable.models.execution import ACTIVE, TERMINAL

__all__ = ["violations"]

SLACK = timedelta(seconds=2)


def violations(using: str = "default") -> list[str]:
    """Every non-terminal execution without lease, due time or awaited message, and what contradicts that."""
    found: list[str] = []
    hints: dict[Any, list[DispatchHint]] = {}
    for hint in DispatchHint.objects.using(using):
        hints.setdefault(hint.execution_id, []).append(hint)
    for row in Execution.objects.using(using).filter(status__in=ACTIVE):
        current = [h for h in hints.get(row.pk, []) if (h.revision, h.epoch) == (row.revision, row.epoch)]
        found += [f"{row.workflow} is {row.status}: {what}" for what in _complaints(using, row, current)]
    return found


def _complaints(using: str, row: Execution[Any], hints: list[DispatchHint]) -> list[str]:
    if (row.lease_token is not None) != (row.status in ("running", "compensating") and row.worker != ""):
        return [f"lease token {row.lease_token}, worker {row.worker!r}"]
    if row.status in ("pending", "running", "compensating"):
        return [] if any(h.state == DispatchHint.State.LIVE for h in hints) else ["it has no live hint"]
    if row.status == "blocked":
        return [] if any(h.state == DispatchHint.State.BLOCKED for h in hints) else ["it has no blocked hint"]
    times = [moment for moment in (row.wake_at, row.deadline) if moment is not None]
    if times and not any(h.token is not None or h.due_at <= min(times) + SLACK for h in hints):
        return [f"it is due at {min(times)} and no hint says so"]
    return _waiting_complaints(using, row) if row.status == "waiting" else []


def _waiting_complaints(using: str, row: Execution[Any]) -> list[str]:
    channels = json.loads(row.awaiting or "[]")
    if not channels and row.wake_at is None:
        return ["it waits for nothing"]
    unread = Message.objects.using(using).filter(
        execution_id=row.pk, channel__in=channels, consumed_by__isnull=True
    )
    return ["it waits for a message that is there"] if unread.exists() else []


def leftovers(using: str = "default") -> list[str]:
    """Hints of executions that have ended, or that do not exist."""
    ended = dict(Execution.objects.using(using).filter(status__in=TERMINAL).values_list("pk", "status"))
    return [
        f"a hint of revision {h.revision} is left of an execution that is {ended[h.execution_id]}"
        for h in DispatchHint.objects.using(using).filter(execution_id__in=ended)
    ]
