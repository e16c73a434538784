"""Lease: what this process believes about one lease. The database's token is the truth."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from uuid import UUID


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
        self._clocks: dict[str, tuple[float, Callable[[], None]]] = {}

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
            self._clocks[name] = (at, action)

    def clear_clock(self, name: str) -> None:
        """What the clock waited for happened in time."""
        with self._lock:
            self._clocks.pop(name, None)

    def next_clock(self) -> float | None:
        """When the first clock rings, if one is set."""
        with self._lock:
            return min((at for at, _action in self._clocks.values()), default=None)

    def take_rung_clock(self) -> Callable[[], None] | None:
        """The action of a clock that has rung; each is handed out once."""
        with self._lock:
            for name, (at, action) in self._clocks.items():
                if at <= time.monotonic():
                    del self._clocks[name]
                    return action
            return None
