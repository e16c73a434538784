"""Plan: how much of everything one demo has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["ROUNDS", "Plan"]

STEPS = 6
"""Steps of the workflow ``shop.fulfil``."""
ROUNDS = 3
"""Orders of a tenant on a data plane: at the beginning, while a plane is down, before two tenants move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The numbers of one run. ``seed`` decides what is ordered, reviewed and killed, not how fast this machine is."""

    orders: int
    workers: int
    seed: int
    celery: bool = False
    tenants: int = 0
    """How many tenants, on data planes of their own; 0: none of either."""
    outage: timedelta = timedelta(seconds=10)
    """How long one plane is down, at least."""

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
        return 90.0 + 2.0 * self.orders + 6 * self.outage.total_seconds() * bool(self.tenants)
