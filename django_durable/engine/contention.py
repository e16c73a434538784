"""Repeat what lost a race for a lock, where nothing of the caller's is at stake."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connections

T = TypeVar("T")
logger = logging.getLogger("django_durable")

# 40001 serialization_failure, 40P01 deadlock_detected, 55P03 lock_not_available
_RETRYABLE_STATES = frozenset({"40001", "40P01", "55P03"})
# SQLite's busy timeout has already waited each time; together about a minute with Django's default of 5 s.
ATTEMPTS = 12
LONGEST_PAUSE = 0.5


def is_contention(error: BaseException) -> bool:
    """Whether the database refused for a lock, a deadlock or a serialisation failure."""
    cause = error.__cause__ or error
    state = getattr(cause, "sqlstate", None)
    if state is not None:
        return state in _RETRYABLE_STATES
    return isinstance(error, OperationalError) and "locked" in str(error)


def is_disconnect(error: BaseException) -> bool:
    """Whether the connection is gone, so that nobody knows what became of the last statement."""
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, OperationalError) or is_contention(error):
        return False
    cause = error.__cause__ or error
    if hasattr(cause, "sqlite_errorname"):
        return str(cause.sqlite_errorname).startswith(("SQLITE_CANTOPEN", "SQLITE_IOERR"))
    state = getattr(cause, "sqlstate", None)
    # Class 08: connection exception; 57P0x: the server shut down or ended the session.
    return state is None or state.startswith("08") or state in {"57P01", "57P02", "57P03"}


def repeated(using: str, attempt: Callable[[], T]) -> T:
    """Run an engine-only transaction again after a deadlock, a lock timeout or a serialisation failure.

    Inside a caller's transaction it runs once: there the error is the caller's.
    """
    for number in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except OperationalError as error:
            if connections[using].in_atomic_block or number == ATTEMPTS or not is_contention(error):
                raise
            logger.debug("repeating an engine transaction on %s after contention", using)
            time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.01 * 2**number)))
    raise AssertionError("unreachable")


def drop_broken_connection(using: str) -> None:
    """Close a connection that no longer works, so that the next statement opens a new one."""
    connection = connections[using]
    if connection.in_atomic_block:
        return
    if connection.connection is not None and not connection.is_usable():
        connection.close()
