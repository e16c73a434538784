"""Repeat what lost a race for a lock, where nothing of the caller's is at stake."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar
from uuid import UUID

from django.db import OperationalError, connections

from django_durable.database_errors import is_contention

T = TypeVar("T")


class MustWake(Exception):
    """An execution that was locked shared has to be woken: the transaction begins again and locks it exclusively.

    Never an upgrade of the lock: two that hold it shared would wait for each other.
    """

    def __init__(self, execution_id: UUID) -> None:
        self.execution_id = execution_id
        super().__init__(f"execution {execution_id} has to be woken")


_exclusive: ContextVar[frozenset[UUID]] = ContextVar("django_durable_exclusive", default=frozenset())
logger = logging.getLogger("django_durable")

# SQLite's busy timeout has already waited each time; together about a minute with Django's default of 5 s.
ATTEMPTS = 12
LONGEST_PAUSE = 0.5


def repeated(using: str, attempt: Callable[[], T]) -> T:
    """Run an engine-only transaction again after a deadlock, a lock timeout or a serialisation failure.

    Inside a caller's transaction it runs once: there the error is the caller's.
    """
    for number in range(1, ATTEMPTS + 1):
        try:
            return _waking(attempt)
        except OperationalError as error:
            if connections[using].in_atomic_block or number == ATTEMPTS or not is_contention(error):
                raise
            logger.debug("repeating an engine transaction on %s after contention", using)
            time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.01 * 2**number)))
    raise AssertionError("unreachable")


def _waking(attempt: Callable[[], T]) -> T:
    """Run a transaction, from the beginning again for each execution that it finds it must wake."""
    try:
        return attempt()
    except MustWake as found:
        if must_lock_exclusively(found.execution_id):
            raise
        token = _exclusive.set(_exclusive.get() | {found.execution_id})
    try:
        return _waking(attempt)
    finally:
        _exclusive.reset(token)


def must_lock_exclusively(execution_id: UUID) -> bool:
    """Whether this transaction is begun again in order to wake this execution."""
    return execution_id in _exclusive.get()


def drop_broken_connection(using: str) -> None:
    """Close a connection that no longer works, so that the next statement opens a new one."""
    connection = connections[using]
    if connection.in_atomic_block:
        return
    if connection.connection is not None and not connection.is_usable():
        connection.close()
