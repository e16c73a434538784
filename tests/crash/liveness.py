"""The liveness rule as a query of the tests' own: what is not over has somebody, or some time, to go on by.

Written apart from ``doctor``'s query on purpose, and stricter: a due time must be a hint's, and no message that
is awaited may lie there unread. Where plane and spine are two databases, an intent that is still in the outbox
counts as a hint, and a hint may outlive its execution until a sweep has been there.
"""

from __future__ import annotations

import json
from typing import Any

from django_durable.models.execution import TERMINAL
from django_durable.operators.doctor.liveness import liveness_violations
from tests.crash.places import fetch, here

__all__ = ["doctors_violations", "violations"]

LIVE, BLOCKED = 0, 1
TURN = 0

EXECUTIONS = """
    SELECT id, workflow, status, revision, epoch, lease_token, worker, awaiting, wake_at, deadline, finished_at
    FROM django_durable_execution e WHERE NOT moving AND NOT (status = 'pending' AND in_line AND EXISTS
    (SELECT 1 FROM django_durable_singletonplace p WHERE p.execution_id = e.id AND (p.number IS NULL OR p.number < 0)))
"""
"""What is frozen for a move goes on when an operator has finished that; who waits for a singleton's slot has a place."""
HINTS = "SELECT execution_id, revision, epoch, state, token, due_at, kind, position, item FROM django_durable_dispatchhint"
INTENTS = """
    SELECT execution_id, revision, epoch, state, NULL, due_at, kind, position, item FROM django_durable_outbox
"""
UNREAD = "SELECT channel FROM django_durable_message WHERE consumed_by IS NULL AND execution_id = %s"

ELSEWHERE = """
    SELECT position, item, kind, attempt FROM django_durable_checkpoint
    WHERE execution_id = %s AND status = 'pending' AND queued_at IS NOT NULL AND kind IN ('step', 'child')
"""
CHILDREN = "SELECT parent_position, parent_item, status FROM django_durable_execution WHERE parent_id = %s"


def violations() -> list[str]:
    """Every execution that is not over without lease, due time or awaited message, and hints of what is over."""
    hints = fetch(here.spine, HINTS)  # read first: an execution moves on before its hint does
    found: list[str] = []
    for plane in here.planes:
        intents = hints + fetch(plane, INTENTS) if here.apart else hints
        for row in fetch(plane, EXECUTIONS):
            mine = [hint for hint in intents if hint[0] == row[0]]
            found += [f"{row[1]} is {row[2]} on {plane}: {what}" for what in _complaints(plane, row, mine)]
    return found


def doctors_violations() -> list[str]:
    """What ``doctor`` says of the same."""
    return [f"doctor finds {execution_id}" for execution_id in liveness_violations(here.plane)]


def _complaints(plane: str, row: tuple[Any, ...], hints: list[tuple[Any, ...]]) -> list[str]:
    _id, _name, status, revision, epoch, token, worker, _awaiting, wake_at, deadline, finished_at = row
    if (finished_at is not None) != (status in TERMINAL):
        return [f"its end time is {finished_at}"]
    if status in TERMINAL:
        return ["it is over, and a hint is left"] if hints and not here.apart else []
    if (token is not None) != (status in ("running", "compensating") and worker != ""):
        return [f"lease {token}, worker {worker!r}"]
    if status != "compensating" and (lost := _lost_elsewhere(plane, row[0], hints)):
        return lost
    current = [hint for hint in hints if hint[6] == TURN and hint[1:3] == (revision, epoch)]
    states = {hint[3] for hint in current}
    if status in ("pending", "running", "compensating"):
        return [] if LIVE in states else ["it has no live hint"]
    if status == "blocked":
        return [] if BLOCKED in states else ["it has no blocked hint"]
    times = [moment for moment in (wake_at, deadline) if moment is not None]
    # A plane that was away when its hint was due is tried again a moment later.
    if times and not any(h[4] is not None or (h[3] == LIVE and (here.apart or h[5] <= min(times))) for h in current):
        return [f"it is due at {min(times)} and no hint says so"]
    return _waiting_complaints(plane, row) if status == "waiting" else []


def _waiting_complaints(plane: str, row: tuple[Any, ...]) -> list[str]:
    # A list among them waits for results, which come without messages.
    awaiting = json.loads(row[7] or "[]")
    channels = [channel for channel in awaiting if isinstance(channel, str)]
    if not awaiting:
        return [] if row[8] is not None else ["it waits for nothing"]
    if not channels and not _pending_of(plane, row[0], awaiting):
        return [f"it waits for {awaiting}, which has ended"]
    unread = {channel for (channel,) in fetch(plane, UNREAD, [row[0]])}
    return ["it waits for a message that is there"] if unread & set(channels) else []


def _lost_elsewhere(plane: str, execution_id: Any, hints: list[tuple[Any, ...]]) -> list[str]:
    """What runs elsewhere and has nothing that brings it on: neither the hint of its attempt nor a live child."""
    begun = fetch(plane, ELSEWHERE, [execution_id])
    if not begun:
        return []
    attempts = {(hint[7], hint[8], hint[1]) for hint in hints if hint[6] != TURN}
    children = {row[:2] for row in fetch(plane, CHILDREN, [execution_id]) if row[2] not in TERMINAL}
    return [
        f"its {kind} at {position}.{item} has nothing to go on by"
        for position, item, kind, attempt in begun
        if ((position, item) not in children if kind == "child" else (position, item, attempt + 1) not in attempts)
    ]


def _pending_of(plane: str, execution_id: Any, awaiting: list[Any]) -> bool:
    """Whether anything of what is awaited is still under way."""
    begun = {f"at:{row[0]}" for row in fetch(plane, ELSEWHERE, [execution_id])}
    return any(begun & set(channels) for channels in awaiting)
