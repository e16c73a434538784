"""StopFlag: an Event that processes share which are forked after it was made."""

from __future__ import annotations

import mmap
import threading
import time

PAUSE = 0.05


class StopFlag(threading.Event):
    """One byte of shared memory, so that a worker's parent process can ask turns in its children to hand back.

    Setting it is safe in a signal handler: no lock is taken. ``wait`` looks twenty times a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._byte = mmap.mmap(-1, 1)

    def is_set(self) -> bool:
        """Whether a process has set it."""
        return self._byte[0] == 1

    def set(self) -> None:
        """Set it for every process that shares it."""
        self._byte[0] = 1

    def clear(self) -> None:
        """Begin again: a worker starts."""
        self._byte[0] = 0

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for at most ``timeout`` seconds; whether it is."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = PAUSE if until is None else min(PAUSE, until - time.monotonic())
            if left <= 0:
                break
            time.sleep(left)
        return self.is_set()
