"""Stopping: SIGTERM and SIGINT ask once, and insist the second time."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["asked_to_stop"]

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def asked_to_stop(first: Callable[[int], None], again: Callable[[int], None]) -> Iterator[None]:
    """Within the block the first of these signals calls ``first(number)``, any later one ``again(number)``.

    Called in a thread of its own. A signal handler would interrupt the main thread anywhere, also while it holds
    the lock of the very event that it should set. Outside the main thread, where Python allows no handlers,
    nothing is installed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    listener = threading.Thread(target=_listen, args=(reading, first, again), name="durable-signals", daemon=True)
    listener.start()
    # The interpreter writes the signal's number to the socket at once, whatever the main thread is doing.
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    handlers = {number: signal.signal(number, lambda _number, _frame: None) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        writing.close()
        listener.join()
        reading.close()


def _listen(reading: socket.socket, first: Callable[[int], None], again: Callable[[int], None]) -> None:
    asked = False
    while received := reading.recv(64):
        for number in received:
            if number in SIGNALS:
                (again if asked else first)(number)
                asked = True
