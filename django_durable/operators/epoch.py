"""bump_epoch: fence a tenant's work in flight and let it go on under a new epoch."""

from __future__ import annotations

from django_durable.engine.reach import reaching
from django_durable.engine.transitions import epoch
from django_durable.planes.placement import plane_of


def bump_epoch(tenant: str) -> int:
    """Raise the tenant's epoch; what ran can commit nothing more, its work is published again. The new epoch.

    Raises ``UnknownTenant``, and ``PlaneUnavailable``, also while the tenant is being moved.
    """
    plane = plane_of(tenant)
    with reaching(plane):
        return epoch.bump_epoch(plane, tenant)
