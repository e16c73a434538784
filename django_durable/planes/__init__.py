"""Which database holds which tenant's executions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "place_tenant": "placement",
    "plane_of": "placement",
    "register_plane": "registry",
    "use_plane": "selection",
}

if TYPE_CHECKING:
    from django_durable.planes.placement import place_tenant as place_tenant
    from django_durable.planes.placement import plane_of as plane_of
    from django_durable.planes.registry import register_plane as register_plane
    from django_durable.planes.selection import use_plane as use_plane

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
