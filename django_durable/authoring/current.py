"""current_step(): what a step body may ask about its own attempt."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from django_durable.authoring.log_line import log_line
from django_durable.engine.lease_state import Lease
from django_durable.errors import ExecutionCancelled, NotInStep

LINES_PER_ATTEMPT = 100
"""Log lines kept of one attempt."""

logger = logging.getLogger("django_durable.step")


class CurrentStep:
    """The attempt that is running now."""

    def __init__(
        self,
        *,
        execution_id: UUID,
        idempotency_key: str,
        attempt: int,
        name: str,
        lease: Lease,
        last_heartbeat: Any = None,
        beat: Callable[[Any], None] | None = None,
    ) -> None:
        self.execution_id = execution_id
        self.attempt = attempt
        self.name = name
        self.idempotency_key = idempotency_key
        self.last_heartbeat: Any = last_heartbeat
        self.lines: list[dict[str, Any]] = []
        self._lease = lease
        self._beat = beat

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer wanted: the execution was cancelled, or another worker has it."""
        return self._lease.cancelled

    def raise_if_cancelled(self) -> None:
        """Raise ``ExecutionCancelled`` once the result is no longer wanted."""
        if self.cancelled:
            raise ExecutionCancelled(f"execution {self.execution_id} no longer wants the result of {self.name!r}")

    def heartbeat(self, details: Any = None) -> None:
        """Say that the body is alive. The last details are ``last_heartbeat`` of the next attempt.

        Of a step elsewhere they are recorded, at most once a second; raises ``UnserializableValue``.
        """
        self.last_heartbeat = details
        if self._beat is not None:
            self._beat(details)

    def log(self, message: str, **fields: Any) -> None:
        """Keep a line with the checkpoint: LINES_PER_ATTEMPT, of LINE_LENGTH characters each. Never raises."""
        logger.debug("step of execution %s logged a line", self.execution_id)
        if len(self.lines) < LINES_PER_ATTEMPT:
            self.lines.append(log_line(message, fields))


_current: ContextVar[CurrentStep | None] = ContextVar("django_durable_step", default=None)


def current_step() -> CurrentStep:
    """The attempt that this code runs in. Raises ``NotInStep`` outside a step body."""
    found = _current.get()
    if found is None:
        raise NotInStep
    return found
