"""Which database holds which tenant's executions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "bump_epoch": "django_durable.operators.epoch",
    "move_tenant": "django_durable.operators.move.tenant",
    "place_tenant": "django_durable.planes.placement",
    "plane_of": "django_durable.planes.placement",
    "register_plane": "django_durable.planes.registry",
    "use_plane": "django_durable.planes.selection",
}

if TYPE_CHECKING:
    from django_durable.operators.epoch import bump_epoch as bump_epoch
    from django_durable.operators.move.tenant import move_tenant as move_tenant
    from django_durable.planes.placement import place_tenant as place_tenant
    from django_durable.planes.placement import plane_of as plane_of
    from django_durable.planes.registry import register_plane as register_plane
    from django_durable.planes.selection import use_plane as use_plane

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
