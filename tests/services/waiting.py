"""Waiting for something to become true, with a deadline: never a fixed sleep."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_until"]

T = TypeVar("T")
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1


def wait_until(condition: Callable[[], T], *, within: float = 30.0, because: str = "") -> T:
    """The first true value of ``condition()``; ``AssertionError`` with the last one after ``within`` seconds.

    Give generous deadlines: a passing test does not wait for them, and machines are slow at times.
    """
    deadline = time.monotonic() + within
    pause = FIRST_PAUSE
    while not (value := condition()):
        left = deadline - time.monotonic()
        if left <= 0:
            what = because or getattr(condition, "__name__", repr(condition))
            raise AssertionError(f"Not within {within:g} s: {what}; the last value was {value!r}.")
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
    return value
