"""step_context: an attempt around a step body that a unit test calls directly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from uuid import UUID

from django_durable.authoring.current import CurrentStep, _current
from django_durable.engine.lease_state import Lease
from django_durable.ids import random_id


@contextmanager
def step_context(
    *,
    execution_id: UUID | None = None,
    position: int = 0,
    attempt: int = 1,
    name: str = "step",
    last_heartbeat: object = None,
    cancelled: bool = False,
) -> Iterator[CurrentStep]:
    """Let ``current_step()`` work in this block, as in a step's body; gives what it returns. Needs no database.

    ``last_heartbeat`` is what the attempt before left behind; ``cancelled=True`` makes the body unwanted.
    """
    lease = Lease(random_id(), random_id(), inf)
    lease.revoked = cancelled
    owner = execution_id or random_id()
    attempt_here = CurrentStep(
        execution_id=owner, idempotency_key=f"{owner}:{position}", attempt=attempt, name=name, lease=lease
    )
    attempt_here.last_heartbeat = last_heartbeat
    token = _current.set(attempt_here)
    try:
        yield attempt_here
    finally:
        _current.reset(token)
