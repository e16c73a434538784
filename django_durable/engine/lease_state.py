"""Lease: what this process believes about one lease. The database's token is the truth."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID


@dataclass(slots=True, eq=False)
class Clock:
    """What has to happen at a monotonic time; while it happens, the clock is ``ringing``."""

    at: float
    action: Callable[[], None]
    ringing: bool = False


class Lease:
    """One held hint. The renewal thread writes it, the turn's thread reads it.

    ``ends`` is the local end: monotonic time of the last successful renewal's sending plus the lease. A failed
    renewal is *unknown* until then. A *clock* is what has to happen at a time while the turn runs: the end of an
    attempt's time, the execution's deadline.
    """

    __slots__ = ("_clocks", "_lock", "ends", "hint_id", "lost", "revoked", "token", "undoing")

    def __init__(self, hint_id: UUID, token: UUID, ends: float) -> None:
        self.hint_id = hint_id
        self.token = token
        self.ends = ends
        self.lost = False
        self.revoked = False
        # A cancel revokes the work under way, never the undo steps that it asks for.
        self.undoing = False
        self._lock = threading.Lock()
        self._clocks: dict[str, Clock] = {}

    @property
    def held(self) -> bool:
        """Whether this process may still believe that it owns the execution."""
        return not self.lost and time.monotonic() < self.ends

    @property
    def cancelled(self) -> bool:
        """Whether what runs under this lease is no longer wanted."""
        return self.lost or (self.revoked and not self.undoing)

    def set_clock(self, name: str, at: float, action: Callable[[], None]) -> None:
        """Have the renewal thread run ``action`` once at monotonic time ``at``, unless cleared before."""
        with self._lock:
            self._clocks[name] = Clock(at, action)

    def clear_clock(self, name: str) -> None:
        """What the clock waited for happened in time."""
        with self._lock:
            self._clocks.pop(name, None)

    def next_clock(self) -> float | None:
        """When the first clock rings, if one is set."""
        with self._lock:
            return min((clock.at for clock in self._clocks.values() if not clock.ringing), default=None)

    def take_rung_clock(self) -> Clock | None:
        """A clock that has rung; each is handed out once, unless it is to ring again."""
        with self._lock:
            for clock in self._clocks.values():
                if clock.at <= time.monotonic() and not clock.ringing:
                    clock.ringing = True
                    return clock
            return None

    def ring_again(self, clock: Clock, at: float) -> None:
        """Its action failed: once more at this time, unless it was cleared or set anew meanwhile."""
        with self._lock:
            if clock in self._clocks.values():
                clock.at, clock.ringing = at, False
