"""The databases that a test may use: the spine's, and those of the planes whose alias is among its ``databases``."""

from __future__ import annotations

from django.db import connections
from django.test.testcases import DatabaseOperationForbidden  # type: ignore[attr-defined]

from django_durable.planes.selection import spine_alias
from django_durable.runtime.tick import places

__all__ = ["usable_databases"]


def usable_databases() -> list[str]:
    """The alias of the spine, then those of the planes that this test may use, in order.

    A ``TestCase`` names its aliases in ``databases``; what it left out is no business of this test's.
    """
    spine = spine_alias()
    planes = sorted({place.alias for place in places()} - {spine})
    return [spine, *(alias for alias in planes if _is_allowed(alias))]


def _is_allowed(alias: str) -> bool:
    try:
        with connections[alias].cursor():
            return True
    except DatabaseOperationForbidden:
        return False
