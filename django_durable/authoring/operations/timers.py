"""Timers: sleeps, and values of time and chance that are the same at every replay."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta

from django_durable.authoring.operations.base import Base, Duration, operation
from django_durable.durations import aware, seconds
from django_durable.engine.derived import derive
from django_durable.engine.journal import Entry
from django_durable.engine.transitions import leave
from django_durable.payloads import decode


class Timers(Base):
    """``ctx.sleep``, ``ctx.now`` and what is like them."""

    @operation
    def sleep(self, duration: Duration) -> None:
        """Wait without a worker. The end is stored once, as an absolute time."""
        length = seconds(duration, name="duration")
        self._sleep(lambda: self._session.claim.now() + timedelta(seconds=length))

    @operation
    def sleep_until(self, moment: datetime) -> None:
        """Wait without a worker until an aware time; a past one yields at once."""
        until = aware(moment, name="moment")
        self._sleep(lambda: until)

    def _sleep(self, until: Callable[[], datetime]) -> None:
        session = self._session
        position, record = session.enter("sleep", "")
        if record is not None and record.status == "completed":
            return
        wake_at = record.wake_at if record is not None and record.wake_at is not None else until()
        if session.claim.now() >= wake_at:
            changes = {"status": "completed", "wake_at": wake_at, "finished_at": session.claim.now()}
            session.record(Entry(record, position, "sleep", "", changes))
            return
        pages = session.pages()
        if record is None:
            changes = {"status": "pending", "wake_at": wake_at, "started_at": session.claim.now()}
            pages = session.pages_with(Entry(None, position, "sleep", "", changes))
        session.leave(lambda p: leave.suspend(session.claim, p, wake_at=wake_at), pages)

    @operation
    def now(self) -> datetime:
        """The plane's clock, aware, UTC; the same at every replay."""
        _position, moment = self._instant("now", "", lambda _position: self._session.claim.now())
        return moment

    @operation
    def random(self) -> float:
        """A number in [0, 1), the same at every replay; derived from the run's secret seed, not written."""
        return random.Random(self._derived("random")).random()

    @operation
    def uuid(self) -> uuid.UUID:
        """A random UUID, the same at every replay; derived from the run's secret seed, not written."""
        return uuid.UUID(bytes=self._derived("uuid")[:16], version=4)

    def _derived(self, kind: str) -> bytes:
        position, record = self._session.enter_unwritten(kind)
        if record is not None:
            return bytes.fromhex(decode(record.encoded_output or "{}")[kind])
        return derive(self._row["seed"], kind, position)
