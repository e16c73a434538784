"""Portion: how many events one run is started for, and how long they are waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django_durable.authoring.debounce import above_zero

__all__ = ["LARGEST", "Portion", "as_portion"]

LARGEST = 1_000
"""Events of one run, at most: they are taken in the transaction that starts it."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Up to ``size`` events, or those of ``window`` seconds since the first."""

    size: int
    window: float


def as_portion(given: Any) -> Portion | None:
    """What ``on_event(batch=(n, window))`` takes. Raises ``TypeError``, ``ValueError``."""
    if given is None:
        return None
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise TypeError(f"batch must be (n, window), such as (100, timedelta(minutes=1)), not {given!r}")
    size, window = given
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"the n of batch must be a whole number, not {size!r}")
    if not 1 <= size <= LARGEST:
        raise ValueError(f"the n of batch must be from 1 to {LARGEST}, not {size}")
    return Portion(size, above_zero(window, name="the window of batch"))
