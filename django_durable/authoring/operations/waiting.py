"""Waiting: what every wait has in common: its position, its deadline, what is recorded of what came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from django_durable.authoring.operations.base import Base, Duration
from django_durable.engine.transitions.wait import PLAIN, Terms
from django_durable.errors import CallbackFailed, DurableError, WaitTimeout, qualified_name
from django_durable.payloads import decode_failure, encode_failure


class Waiting(Base):
    """One way to wait for whatever is sent to an execution."""

    def _receive(
        self,
        kind: str,
        name: str,
        timeout: Duration | None,
        until: datetime | None,
        late: Callable[[int], WaitTimeout],
        channels: Callable[[int], Sequence[str]],
        terms: Callable[[int, datetime | None], Terms] = lambda _position, _until: PLAIN,
    ) -> tuple[int, str]:
        """The position of the wait, and the stored text of what it took.

        ``late`` makes the error of its deadline. ``channels`` and ``terms`` are asked with the position, once it is
        sure that the history has no answer.
        """
        limit = self._limit(timeout, until)
        session = self._session
        position, record = session.enter(kind, name)
        if record is not None and record.status == "completed":
            return position, record.encoded_output or "null"
        if record is not None and record.status == "failed":
            raise _recorded(record.encoded_error, late(position))
        wake_at = record.wake_at if record is not None else limit()
        letter = session.wait(
            record,
            position,
            kind,
            name,
            channels(position),
            wake_at,
            encode_failure(late(position)),
            terms(position, wake_at),
        )
        if letter.error is not None:
            raise _recorded(letter.error, late(position))
        return position, letter.payload


def _recorded(encoded: str | None, late: WaitTimeout) -> DurableError:
    """The error that a wait recorded: its callback was failed, or else its time was over."""
    found = decode_failure(encoded) if encoded is not None else {}
    if found.get("type") == qualified_name(CallbackFailed):
        return CallbackFailed(found["message"])
    return late
