"""Plan: how much of everything one demo has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["Plan"]

STEPS = 6
"""Steps of the workflow ``shop.fulfil``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The numbers of one run. ``seed`` decides what is ordered, reviewed and killed, not how fast this machine is."""

    orders: int
    workers: int
    seed: int
    celery: bool

    steps: int = STEPS
    kills: int = 7
    """Workers to kill in mid-step: two more than are required, for kills that come a moment too late."""
    body_seconds: float = 0.2
    """What a step's body takes on top of its work."""
    pause: timedelta = timedelta(seconds=2)
    """How long an order sleeps."""

    @property
    def seconds(self) -> float:
        """After this time the demo gives up: far more than it needs, so that a slow machine is no failure."""
        return 90.0 + 2.0 * self.orders
