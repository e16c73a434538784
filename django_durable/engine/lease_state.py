"""Lease: what this process believes about one lease. The database's token is the truth."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from uuid import UUID


class Lease:
    """One held hint. The renewal thread writes it, the turn's thread reads it.

    ``ends`` is the local end: monotonic time of the last successful renewal's sending plus the lease. A failed
    renewal is *unknown* until then. ``clock`` is what has to happen at a time while a body runs.
    """

    __slots__ = ("_clock", "_lock", "ends", "hint_id", "lost", "revoked", "token")

    def __init__(self, hint_id: UUID, token: UUID, ends: float) -> None:
        self.hint_id = hint_id
        self.token = token
        self.ends = ends
        self.lost = False
        self.revoked = False
        self._lock = threading.Lock()
        self._clock: tuple[float, Callable[[], None]] | None = None

    @property
    def held(self) -> bool:
        """Whether this process may still believe that it owns the execution."""
        return not self.lost and time.monotonic() < self.ends

    @property
    def cancelled(self) -> bool:
        """Whether what runs under this lease is no longer wanted."""
        return self.lost or self.revoked

    def set_clock(self, at: float, action: Callable[[], None]) -> None:
        """Have the renewal thread run ``action`` once at monotonic time ``at``, unless cleared before."""
        with self._lock:
            self._clock = (at, action)

    def clear_clock(self) -> None:
        """The body is back in time."""
        with self._lock:
            self._clock = None

    def next_clock(self) -> float | None:
        """When the clock rings, if one is set."""
        clock = self._clock
        return clock[0] if clock else None

    def take_rung_clock(self) -> Callable[[], None] | None:
        """The action of a clock that has rung; it is handed out once."""
        with self._lock:
            if self._clock is None or self._clock[0] > time.monotonic():
                return None
            action = self._clock[1]
            self._clock = None
            return action
