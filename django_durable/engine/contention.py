"""Repeat what lost a race for a lock, where nothing of the caller's is at stake."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import OperationalError, connections

from django_durable.database_errors import is_contention

T = TypeVar("T")
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
