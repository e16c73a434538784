"""Which plane the code that runs now works on: set around a turn, a retry, a callback, and by ``use_plane``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django_durable.conf import config
from django_durable.errors import PlaneNotSelected
from django_durable.planes.placement import plane_of
from django_durable.planes.registry import alias_of, all_planes, planes_in_use

_selected: ContextVar[str | None] = ContextVar("django_durable_plane", default=None)


def spine_alias() -> str:
    """Alias of the database that holds the hints."""
    return config().spine


def plane_alias(tenant: str) -> str:
    """Alias of the database that holds this tenant's executions; without a tenant the selected one, or the spine's.

    Raises ``UnknownTenant``, ``PlaneUnavailable``.
    """
    if tenant:
        return plane_of(tenant)
    return _selected.get() or spine_alias()


def selected_alias() -> str:
    """Alias of the selected plane. Raises ``PlaneNotSelected`` where the project has planes and none is selected."""
    alias = _selected.get()
    if alias is not None:
        return alias
    if planes_in_use():
        raise PlaneNotSelected("no data plane is selected here; use use_plane(tenant or plane), or .using(alias)")
    return spine_alias()


@contextmanager
def use_plane(tenant_or_plane: str) -> Iterator[str]:
    """Select a plane, by its name or by a tenant that lives on it, for the length of a block; yields its alias.

    New threads start with none selected. Raises ``UnknownTenant``, ``PlaneUnavailable``.
    """
    known = tenant_or_plane in all_planes()
    alias = alias_of(tenant_or_plane) if known else plane_of(tenant_or_plane)
    with selected(alias):
        yield alias


@contextmanager
def selected(alias: str) -> Iterator[None]:
    """Select a plane by its alias for the length of a turn, a retry, a callback."""
    token = _selected.set(alias)
    try:
        yield
    finally:
        _selected.reset(token)
