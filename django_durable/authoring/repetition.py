"""Repetition: when a transactional step is begun again whole, without using an attempt."""

from __future__ import annotations

import random
import time

from django.db import connections

from django_durable.database_errors import is_contention, is_disconnect

REPEATS = 30
"""Times that it is begun, at most, before contention or a lost connection counts as its failure."""
LONGEST_PAUSE = 1.0
"""Seconds between two of them, at most."""


def is_passing(error: Exception) -> bool:
    """Whether the engine's own statement met contention or lost its connection."""
    return is_contention(error) or is_disconnect(error)


def is_worth_repeating(error: Exception, number: int, using: str, begun_on: object) -> bool:
    """Whether its body, whose ``number``-th transaction has been rolled back, met contention or lost its connection.

    An error of another database, or of a cursor of the body's own, is the body's: its connection still works.
    """
    connection = connections[using]
    if connection.in_atomic_block or number >= REPEATS:
        return False
    # A rollback that fails leaves a new connection in the place of the lost one.
    return is_contention(error) or (
        is_disconnect(error) and (connection.connection is not begun_on or not connection.is_usable())
    )


def pause_before(number: int) -> None:
    """Wait before the next one, longer each time."""
    time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.02 * 2 ** min(number, 10))))
