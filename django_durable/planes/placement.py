"""On which plane a tenant lives."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError

from django_durable.conf import config
from django_durable.errors import PlaneUnavailable, UnknownTenant
from django_durable.models import TenantPlacement
from django_durable.models.columns import check_name
from django_durable.planes.registry import alias_of, find_plane, planes_in_use


def placement_of(tenant: str) -> str:
    """The name of the tenant's plane, read from the spine. Raises ``UnknownTenant``."""
    try:
        plane = (
            TenantPlacement.objects.using(config().spine).filter(pk=tenant).values_list("plane", flat=True).first()
        )
    except (DatabaseError, InterfaceError) as error:
        raise PlaneUnavailable("the spine cannot be reached to find the tenant's data plane") from error
    if plane is None:
        raise UnknownTenant(f"tenant {tenant!r} is placed on no data plane; use place_tenant()")
    return str(plane)


def plane_of(tenant: str) -> str:
    """The database alias on which this tenant's executions live.

    The spine's while the project has no planes. Raises ``UnknownTenant``, ``PlaneUnavailable``.
    """
    check_name(tenant, "tenant")
    if not planes_in_use():
        return config().spine
    return alias_of(placement_of(tenant))


def place_tenant(tenant: str, plane: str) -> None:
    """Place a new tenant on a plane. Raises ``ValueError`` for one that is placed elsewhere: that is a move."""
    check_name(tenant, "tenant")
    find_plane(plane)
    row, created = TenantPlacement.objects.using(config().spine).get_or_create(
        tenant=tenant, defaults={"plane": plane}
    )
    if not created and row.plane != plane:
        raise ValueError(f"tenant {tenant!r} is placed on {row.plane!r} already; use move_tenant() to move it")
