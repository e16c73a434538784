"""The nudge: tell whoever listens that something is due now, after the commit that made it so.

A nudge is only ever an improvement of latency. It never fails a committed call and never blocks the caller:
listeners in this process are events to set; a broker is spoken to by a thread of its own that is started with
the first message; other processes are told by the database where the project opted in. What is lost here is found
by the worker's poll or the tick.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from uuid import UUID

from django.db import transaction

from django_durable.dispatch.notify import can_notify, notify
from django_durable.quiet import report

Listener = Callable[[UUID, str], None]
_listeners: list[Listener] = []
_lock = threading.Lock()


def listen(listener: Listener) -> Callable[[], None]:
    """Have ``listener(hint_id, queue)`` called after each commit that made work due; returns its removal.

    It runs in the committing thread: it must return at once.
    """
    with _lock:
        _listeners.append(listener)

    def forget() -> None:
        with _lock:
            if listener in _listeners:
                _listeners.remove(listener)

    return forget


def nudge_after_commit(using: str, hint_id: UUID, queue: str) -> None:
    """Nudge once the transaction that is open on ``using``, the spine's, has committed; at once where none is."""
    if _listeners:
        transaction.on_commit(lambda: nudge(hint_id, queue), using=using, robust=True)
    if can_notify(using):
        transaction.on_commit(lambda: notify(using, queue), using=using, robust=True)


def nudge(hint_id: UUID, queue: str) -> None:
    """Tell every listener now."""
    for listener in tuple(_listeners):
        try:
            listener(hint_id, queue)
        except Exception as error:
            report(error, "a nudge listener failed; the work is found by the next poll")
