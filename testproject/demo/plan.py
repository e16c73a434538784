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
    kills: int = 6
    """Workers to kill in mid-step: one more than is required, for a kill that comes a moment too late."""
    pause: timedelta = timedelta(seconds=2)
    """How long an order sleeps."""

    @property
    def body_seconds(self) -> float:
        """What a step's body takes on top of its work. Celery runs two bodies at a time here, not eight."""
        return 0.1 if self.celery else 0.2

    @property
    def seconds(self) -> float:
        """After this time the demo gives up: far more than it needs, so that a slow machine is no failure."""
        return 90.0 + 2.0 * self.orders
