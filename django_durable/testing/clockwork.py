"""Clockwork: the kit's hand on the database's clock, the turn under way included."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from math import inf

from django_durable import clock
from django_durable.authoring.place import current
from django_durable.durations import seconds
from django_durable.engine.claimed import Claimed
from django_durable.engine.lease_state import Lease
from django_durable.engine.transitions.recover import time_out_claimed
from django_durable.engine.transitions.undo import begin_asked


class Clockwork:
    """Moves the clock forward; a body that moves it has taken that long."""

    def __init__(self) -> None:
        self.moved = 0.0
        self._turn: Claimed | None = None

    @property
    def in_turn(self) -> bool:
        """Whether a turn is under way."""
        return self._turn is not None

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

    The clocks of a turn (an attempt's timeout, the execution's deadline) are looked at when a body is back and after
    a pause. One that has rung by then ends the turn before anything more of it is recorded; ``overran`` is what
    production's renewal thread would have done in the middle of it.
    """

    __slots__ = ("_clockwork", "overran")

    def __init__(self, claim: Claimed, clockwork: Clockwork) -> None:
        super().__init__(claim.hint_id, claim.token, inf)
        self._clockwork = clockwork
        self.overran: Callable[[], None] | None = None
        deadline = claim.row["deadline"]
        if deadline is not None:
            remaining = (deadline - claim.now()).total_seconds()
            self.set_clock("deadline", time.monotonic() + remaining, partial(_time_out, claim, self))

    def set_clock(self, name: str, at: float, action: Callable[[], None]) -> None:
        """Remember when something is late, on a time line that ``advance`` moves too."""
        super().set_clock(name, at + self._clockwork.moved, action)

    def clear_clock(self, name: str) -> None:
        """A body is back: in time, or the turn ends here."""
        self.look_at_clocks()
        super().clear_clock(name)

    def look_at_clocks(self) -> None:
        """End the turn where a clock has rung, the earliest first."""
        place = current.get()
        rung = min(self._clocks.values(), key=lambda clock: clock.at, default=None)
        if rung is None or place is None or self.overran or time.monotonic() + self._clockwork.moved < rung.at:
            return
        self.overran = rung.action
        place.session.abandon("the turn ran longer than its step or its deadline allows")


def _time_out(claim: Claimed, lease: Lease) -> None:
    """The turn has ended by now, so what undo steps it has to make room for may begin."""
    if time_out_claimed(claim, lease):
        begin_asked(claim)


class SkippedPauses(threading.Event):
    """Given to a turn as its stop event: the pauses that it waits out under its lease pass on the clock instead."""

    def __init__(self, clockwork: Clockwork, lease: UnwatchedLease) -> None:
        super().__init__()
        self._clockwork = clockwork
        self._lease = lease

    def wait(self, timeout: float | None = None) -> bool:
        """Move the clock by the timeout."""
        self._clockwork.advance(timeout or 0)
        self._lease.look_at_clocks()
        return self.is_set()
