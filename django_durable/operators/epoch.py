"""bump_epoch: fence a tenant's work in flight and let it go on under a new epoch."""

from __future__ import annotations

from typing import Any

from django_durable.engine.reach import reaching
from django_durable.engine.transitions import epoch
from django_durable.operators.actors import attribution
from django_durable.operators.audit import note_action
from django_durable.planes.placement import plane_of


def bump_epoch(tenant: str, *, actor: Any = None) -> int:
    """Raise the tenant's epoch; what ran can commit nothing more, its work is published again. The new epoch.

    An ``actor`` is noted on the spine. Raises ``UnknownTenant``, and ``PlaneUnavailable``, also while the tenant is
    being moved.
    """
    by = attribution(actor, "", required=False)
    plane = plane_of(tenant)
    with reaching(plane):
        raised = epoch.bump_epoch(plane, tenant)
    if by.actor:
        note_action("bump_epoch", by.actor)
    return raised
