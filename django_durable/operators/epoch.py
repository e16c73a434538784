"""bump_epoch: fence a tenant's work in flight and let it go on under a new epoch."""

from __future__ import annotations

from django_durable.engine.transitions import epoch
from django_durable.planes.placement import plane_of


def bump_epoch(tenant: str) -> int:
    """Raise the tenant's epoch; what ran can commit nothing more, its work is published again. The new epoch."""
    return epoch.bump_epoch(plane_of(tenant), tenant)
