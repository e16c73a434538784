"""Clockwork: the kit's hand on the database's clock, the turn under way included."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from math import inf

from django_durable import clock
from django_durable.authoring.place import current
from django_durable.durations import seconds
from django_durable.engine.claimed import Claimed
from django_durable.engine.lease_state import Lease


class Clockwork:
    """Moves the clock forward; a body that moves it has taken that long."""

    def __init__(self) -> None:
        self.moved = 0.0
        self._turn: Claimed | None = None

    def advance(self, duration: float | timedelta) -> None:
        """Move the clock by seconds or a timedelta, finite and not negative; runs nothing."""
        length = timedelta(seconds=seconds(duration, name="duration"))
        clock.shift(length)
        self.moved += length.total_seconds()
        if self._turn is not None:
            # A turn carries the clock that it read at its claim forward by itself.
            self._turn.read_at += length

    @contextmanager
    def during(self, claim: Claimed) -> Iterator[None]:
        """Let this claim's view of the clock move along."""
        self._turn = claim
        try:
            yield
        finally:
            self._turn = None


class UnwatchedLease(Lease):
    """A lease that nobody renews and that does not end: the kit has no second worker and no thread.

    A step's clocks are looked at when its body is back. One that has rung by then ends the turn before anything
    of it is recorded, and ``overran`` is what production's renewal thread would have done in the middle of it.
    """

    __slots__ = ("_clockwork", "_limit", "overran")

    def __init__(self, claim: Claimed, clockwork: Clockwork) -> None:
        super().__init__(claim.hint_id, claim.token, inf)
        self._clockwork = clockwork
        self._limit: tuple[float, Callable[[], None]] | None = None
        self.overran: Callable[[], None] | None = None

    def set_clock(self, at: float, action: Callable[[], None]) -> None:
        """Remember when the body is late, on a time line that ``advance`` moves too."""
        self._limit = (at + self._clockwork.moved, action)

    def clear_clock(self) -> None:
        """The body is back: in time, or the turn ends here."""
        limit, self._limit = self._limit, None
        place = current.get()
        if limit is None or place is None or time.monotonic() + self._clockwork.moved < limit[0]:
            return
        self.overran = limit[1]
        place.session.abandon("the body ran longer than its step allows")


class SkippedPauses(threading.Event):
    """Given to a turn as its stop event: the pauses that it waits out under its lease pass on the clock instead."""

    def __init__(self, clockwork: Clockwork) -> None:
        super().__init__()
        self._clockwork = clockwork

    def wait(self, timeout: float | None = None) -> bool:
        """Move the clock by the timeout."""
        self._clockwork.advance(timeout or 0)
        return self.is_set()
