"""pauses: how a caller waits for what others do, by looking again and again; and where it must not."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from django.db import connections

from django_durable.authoring.place import current
from django_durable.errors import InvalidTransition

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5
"""Seconds between looks: from the first to the longest, growing by half each time."""


def pauses(timeout: float | None) -> Iterator[float]:
    """The seconds to wait before each further look; it ends ``timeout`` seconds after this call, ``None``: never."""
    return _until(math.inf if timeout is None else time.monotonic() + timeout)


def _until(limit: float) -> Iterator[float]:
    pause = FIRST_PAUSE
    while (left := limit - time.monotonic()) > 0:
        yield min(pause, left)
        pause = min(LONGEST_PAUSE, pause * 1.5)


def refuse_hopeless_wait(call: str, using: str, *, in_turn: str, in_transaction: str) -> None:
    """Raise ``InvalidTransition`` where waiting could never end; the last two say what to do instead."""
    if current.get() is not None:
        raise InvalidTransition(
            f"{call} was called inside a turn or a step, where waiting would hold the worker; {in_turn}"
        )
    if connections[using].in_atomic_block:
        raise InvalidTransition(
            f"{call} was called inside a transaction, which could never see what it waits for; {in_transaction}"
        )
