"""A breaker per plane: one that cannot be reached is left alone for a while, and reported once a state change."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, OperationalError, connections

from django_durable.database_errors import is_disconnect

logger = logging.getLogger("django_durable")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds until a plane is tried again: from the first to the longest, doubled each time."""

_open: dict[str, tuple[float, float]] = {}
_lock = threading.Lock()


def available(alias: str) -> bool:
    """Whether a plane's database should be tried now."""
    state = _open.get(alias)
    return state is None or time.monotonic() >= state[0]


@contextmanager
def guarded(alias: str) -> Iterator[None]:
    """Run a block on a plane; an outage in it opens the breaker, an answer closes it. The error passes on."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        if is_disconnect(error):  # a missing table, a lock: no outage
            note_failure(alias, error)
        raise
    if alias in _open and _answers(alias):
        note_success(alias)


def _answers(alias: str) -> bool:
    """Ask the plane itself: a block without an error may have had nothing to ask it."""
    connection = connections[alias]
    try:
        connection.ensure_connection()
        return bool(connection.is_usable())
    except (OperationalError, InterfaceError) as error:
        note_failure(alias, error)
        return False


def note_failure(alias: str, error: Exception) -> None:
    """The plane could not be reached: leave it alone, twice as long as last time."""
    with _lock:
        before = _open.get(alias)
        pause = FIRST_PAUSE if before is None else min(LONGEST_PAUSE, before[1] * 2)
        _open[alias] = (time.monotonic() + pause * random.uniform(0.8, 1.2), pause)
    if before is None:
        logger.warning("database %r cannot be reached (%s); its work waits", alias, type(error).__name__)
    try:
        connections[alias].close()
    except DatabaseError:
        pass


def note_success(alias: str) -> None:
    """The plane answered."""
    if alias in _open:
        with _lock:
            if _open.pop(alias, None) is not None:
                logger.warning("database %r can be reached again", alias)
