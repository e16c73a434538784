"""Verbs on planes: add, drain, close, place. Each is attributed in the transaction that does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import Q

from django_durable.engine.reach import reaching
from django_durable.errors import InvalidTransition
from django_durable.models import DataPlane, TenantPlacement
from django_durable.models.execution import ACTIVE
from django_durable.operators.actors import attribution
from django_durable.operators.audit import note_action
from django_durable.operators.stats import count_statuses
from django_durable.planes.placement import place_tenant
from django_durable.planes.registry import Plane, alias_of, find_plane, forget_planes, held, register_plane, set_state
from django_durable.planes.selection import spine_alias

__all__ = ["add_plane", "close_plane", "count_unfinished", "drain_plane", "place"]


def add_plane(name: str, database: str, *, actor: Any) -> None:
    """Register a plane, or one that exists under another alias; a draining or closed one is active again.

    Raises ``ValueError`` for an alias that is not in ``DATABASES`` or that another plane has.
    """

    def change() -> None:
        register_plane(name, database)
        set_state(name, DataPlane.State.ACTIVE)

    _attributed("add_plane", actor, change)


def drain_plane(name: str, *, actor: Any) -> None:
    """Let no more tenants onto a plane; those that live there go on, new starts among them, until they are moved.

    Raises ``PlaneUnavailable`` for a plane that nobody registered.
    """
    _attributed("drain_plane", actor, lambda: set_state(name, DataPlane.State.DRAINING))


def close_plane(name: str, *, actor: Any, force: bool = False) -> None:
    """Leave a plane alone: nothing on it is claimed, swept or started any more.

    Raises ``InvalidTransition`` while tenants or unfinished executions are on it, ``PlaneUnavailable`` where that
    cannot be seen. ``force`` does not look: what is unfinished stays as it is until the plane is added again.
    """

    def change() -> None:
        with held(find_plane(name, fresh=True)) as plane:
            if not force:
                _refuse_to_strand(plane)
            set_state(name, DataPlane.State.CLOSED)

    _attributed("close_plane", actor, change)


def place(tenant: str, plane: str, *, actor: Any) -> None:
    """Place a new tenant. Raises as ``place_tenant``."""
    _attributed("place_tenant", actor, lambda: place_tenant(tenant, plane))


def count_unfinished(alias: str) -> int:
    """Executions on a database that have not ended, each status up to the bound of ``stats``."""
    counted = count_statuses(alias)
    return sum(counted[status] for status in ACTIVE)


def _refuse_to_strand(plane: Plane) -> None:
    tenants = TenantPlacement.objects.using(spine_alias()).filter(Q(plane=plane.name) | Q(moving_to=plane.name))
    named = list(tenants.order_by("pk").values_list("pk", flat=True)[:4])
    if named:
        shown = ", ".join(map(repr, named[:3])) + (", …" if len(named) > 3 else "")
        raise InvalidTransition(f"tenants are placed on data plane {plane.name!r} ({shown}); move them first")
    alias = alias_of(plane.name)
    with reaching(alias):
        unfinished = count_unfinished(alias)
    if unfinished:
        raise InvalidTransition(f"{unfinished} execution(s) on data plane {plane.name!r} have not ended")


def _attributed(verb: str, actor: Any, change: Callable[[], None]) -> None:
    by = attribution(actor, "", required=True)
    with transaction.atomic(using=spine_alias()):
        change()
        note_action(verb, by.actor)
    forget_planes()  # whoever looked before the commit has read what is over
