"""What counts as a duration and as a point in time: one rule for every argument that takes one.

A duration is a finite number of seconds or a ``timedelta``, never negative, at most ``MAXIMUM_SECONDS``.
Anything else is refused where it is passed: a comparison with NaN is always false, so a NaN that got in would
wait for ever.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from django_durable.showing import shown

__all__ = ["MAXIMUM_SECONDS", "as_timedelta", "aware", "seconds"]

MAXIMUM_SECONDS = 220_000_000_000
"""The longest duration, about 6,970 years: now plus this stays below the year 9999."""


def seconds(value: object, *, name: str, maximum: float | None = None) -> float:
    """``value`` as seconds; ``name`` is the argument's name for the error, ``maximum`` a bound in seconds.

    Raises ``TypeError`` for anything but int, float and timedelta (a bool is neither), ``ValueError`` for
    NaN, infinities, negative and too large values.
    """
    limit = MAXIMUM_SECONDS if maximum is None else min(maximum, MAXIMUM_SECONDS)
    if isinstance(value, bool) or not isinstance(value, (int, float, timedelta)):
        raise TypeError(
            f"{name} must be a number of seconds (int or float) or a timedelta, "
            f"not {shown(value)} ({type(value).__name__})."
        )
    # Compared before it becomes a float: an int of any size compares, only a small one converts.
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError(f"{name} must be finite, not {shown(value)}; leave it out to wait without a limit.")
    if number < 0:
        raise ValueError(f"{name} must not be negative, but is {shown(value)}; 0 means at once.")
    if number > limit:
        raise ValueError(f"{name} must be at most {limit:,} seconds, but is {shown(value)}.")
    return abs(float(number))  # abs: -0.0 is 0.0


def as_timedelta(value: object, *, name: str) -> timedelta:
    """``value`` as a timedelta, to the microsecond; refuses what ``seconds`` refuses, as it does."""
    number = seconds(value, name=name)
    return value if isinstance(value, timedelta) else timedelta(seconds=number)


def aware(value: object, *, name: str) -> datetime:
    """``value`` itself if it is a datetime with a time zone, between the years 2 and 9998 in UTC.

    The first and the last year are left out because a datetime in them cannot be shown in every zone.
    Raises ``TypeError`` for anything but a datetime, ``ValueError`` for a naive or unrepresentable one.
    """
    if not isinstance(value, datetime):
        raise TypeError(f"{name} must be an aware datetime, not {shown(value)} ({type(value).__name__}).")
    if value.utcoffset() is None:
        raise ValueError(
            f"{name} must be an aware datetime, but {shown(value)} has no time zone; use "
            f"django.utils.timezone.now() or make_aware()."
        )
    try:
        year = value.astimezone(UTC).year
    except OverflowError:
        year = value.year
    if not 2 <= year <= 9998:
        raise ValueError(f"{name} must be between the years 2 and 9998 in UTC, but is {shown(value)}.")
    return value
