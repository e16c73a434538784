"""ScopedThrottle: how often one client may ask, by what it asks for."""

from __future__ import annotations

from typing import Any, Final

from rest_framework.throttling import ScopedRateThrottle

__all__ = ["RATES", "ScopedThrottle"]

RATES: Final = {"durable_read": "6000/min", "durable_write": "3000/min", "durable_callback": "600/min"}
"""By scope, for each user or, without one, each address."""


class ScopedThrottle(ScopedRateThrottle):
    """The default of ``REST_THROTTLE_CLASSES``; ``DEFAULT_THROTTLE_RATES`` of Django REST framework goes first."""

    def get_rate(self) -> str | None:
        """The project's rate of the scope, also ``None`` for no limit, or ours."""
        rates: dict[str, Any] = self.THROTTLE_RATES
        rate: str | None = rates[self.scope] if self.scope in rates else RATES.get(str(self.scope))
        return rate
