"""bump_epoch: fence a tenant's work in flight and let it go on under a new epoch."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from django_durable.engine.contention import repeated
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
        return repeated(plane, lambda: _noted_bump(plane, tenant, by.actor))


def _noted_bump(plane: str, tenant: str, actor: str) -> int:
    """One transaction; where the note is on another database it is there before this one commits."""
    with transaction.atomic(using=plane):
        raised = epoch.bump_epoch(plane, tenant)
        if actor:
            note_action("bump_epoch", actor)
        return raised
