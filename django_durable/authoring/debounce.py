"""Debounce: one run for a burst of events, with the last one's payload."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django_durable.durations import seconds

__all__ = ["Debounce", "as_debounce"]


@dataclass(frozen=True, slots=True)
class Debounce:
    """Start once no event has come for ``quiet``; at the latest ``at_most`` after the first, if that is given.

    Both are seconds or a timedelta, above 0. Without ``at_most`` a stream that never pauses starts nothing. Raises
    ``TypeError`` and ``ValueError``, also where ``at_most`` is shorter than ``quiet``.
    """

    quiet: float | timedelta
    at_most: float | timedelta | None = None

    def __post_init__(self) -> None:
        quiet = above_zero(self.quiet, name="debounce")
        if self.at_most is not None and above_zero(self.at_most, name="at_most") < quiet:
            raise ValueError(f"at_most ({self.at_most!r}) must not be shorter than quiet ({self.quiet!r})")


def as_debounce(given: Any) -> Debounce | None:
    """What ``on_event(debounce=…)`` takes: a duration, or a ``Debounce``."""
    return given if given is None or isinstance(given, Debounce) else Debounce(given)


def above_zero(value: Any, *, name: str) -> float:
    """A duration in seconds that is not 0. Raises ``TypeError``, ``ValueError``."""
    found = seconds(value, name=name)
    if not found:
        raise ValueError(f"{name} must be above 0; leave it out to start a run for each event")
    return found
