"""On which plane a tenant lives."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError

from django_durable.conf import config
from django_durable.errors import InvalidTransition, PlaneUnavailable, UnknownTenant
from django_durable.models import TenantPlacement
from django_durable.models.columns import check_name
from django_durable.planes.registry import Plane, alias_of, find_plane, held, planes_in_use


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

    The spine's while the project has no planes. Raises ``UnknownTenant``, ``PlaneUnavailable``, also for a plane
    that is closed: what is accepted there would not be run.
    """
    check_name(tenant, "tenant")
    if not planes_in_use():
        return config().spine
    name = placement_of(tenant)
    if not find_plane(name).claimable:
        raise PlaneUnavailable(
            f"data plane {name!r} of tenant {tenant!r} is closed; move the tenant, or add it again"
        )
    return alias_of(name)


def place_tenant(tenant: str, plane: str) -> None:
    """Place a new tenant on a plane. Running it again is harmless.

    Raises ``ValueError`` for a tenant that is placed elsewhere (that is a move), ``PlaneUnavailable`` for a plane
    that nobody registered, ``InvalidTransition`` for one that takes no more tenants.
    """
    check_name(tenant, "tenant")
    found = find_plane(plane, fresh=True)
    rows = TenantPlacement.objects.using(config().spine)
    row = rows.filter(pk=tenant).first()
    if row is None:
        with held(found) as now:
            refuse_tenants(now)
            row, _created = rows.get_or_create(tenant=tenant, defaults={"plane": plane})
    if row.plane != plane:
        raise ValueError(f"tenant {tenant!r} is placed on {row.plane!r} already; use move_tenant() to move it")


def refuse_tenants(plane: Plane) -> None:
    """Raise ``InvalidTransition`` where no tenant may come to this plane any more."""
    if not plane.accepts_tenants:
        raise InvalidTransition(f"data plane {plane.name!r} is {plane.state} and takes no more tenants")
