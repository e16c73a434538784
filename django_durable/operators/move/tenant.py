"""move_tenant: take a tenant with everything it has to another plane.

The placement row is the state of the move, and each stage can be run again:

1. *begun*: ``moving_to`` is set. The source is fenced: a higher epoch, no tokens, no hints, nothing accepted.
2. rows are copied and verified, whole executions a transaction.
3. *switched*: one spine transaction points the placement and the routes to the target.
4. the target is released and its work published; the source's rows are deleted; ``moving_to`` is cleared.
"""

from __future__ import annotations

from typing import Any

from django.db import InterfaceError, OperationalError, connections, transaction

from django_durable.database_errors import is_disconnect
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.transitions.epoch import fence_all, publish_standing, raise_epoch, unfreeze
from django_durable.errors import InvalidTransition, PlaneUnavailable, UnknownTenant
from django_durable.models import Execution, ExecutionRoute, Outbox, TenantEpoch, TenantPlacement
from django_durable.operators.actors import attribution
from django_durable.operators.audit import note_action
from django_durable.operators.move.copying import BATCH, copy_tenant, pages, remove, remove_events, remove_gathered
from django_durable.operators.move.schedules import (
    copy_schedules,
    freeze_schedules,
    release_schedules,
    remove_schedules,
)
from django_durable.planes.placement import refuse_tenants
from django_durable.planes.registry import Plane, alias_of, find_plane, held
from django_durable.planes.selection import spine_alias


def move_tenant(tenant: str, to: str, *, actor: Any) -> int:
    """Move a tenant to another plane, or finish a move that was cut short; how many executions went.

    Raises ``UnknownTenant``, ``PlaneUnavailable``, ``InvalidTransition`` while a move elsewhere is unfinished, and
    for a plane that takes no more tenants. A move that was begun in time is finished.
    """
    by = attribution(actor, "", required=True)
    plane = find_plane(to, fresh=True)
    target = alias_of(to)
    placement = _begin(tenant, plane, by.actor)
    source = alias_of(_source_of(placement, to))
    try:
        return _carry_out(placement, source, target, to, by.actor)
    except (OperationalError, InterfaceError) as error:
        if not is_disconnect(error):
            raise
        for alias in (source, target):
            connections[alias].close_if_unusable_or_obsolete()
        raise PlaneUnavailable(
            f"database {source!r} or {target!r} cannot be reached; tenant {tenant!r} waits: run the move again"
        ) from error


def _carry_out(placement: TenantPlacement, source: str, target: str, to: str, actor: str) -> int:
    tenant = str(placement.tenant)
    if source == target:
        _finish(tenant)
        return 0
    if placement.plane != to:
        freeze(source, tenant, to)
        copy_tenant(source, target, tenant)
        copy_schedules(source, target, tenant)
        _prepare(source, target, tenant)
        _switch(placement, target, to, actor)
    moved = release(target, tenant)
    release_schedules(target, tenant)
    for page in pages(source, tenant):
        with transaction.atomic(using=source):
            remove(source, page)
    remove_events(source, tenant)
    with transaction.atomic(using=source):
        remove_schedules(source, tenant)
    remove_gathered(source, tenant)
    _finish(tenant)
    return moved


def _begin(tenant: str, target: Plane, actor: str) -> TenantPlacement:
    """Say where the tenant goes, and who begins to fence it."""
    spine, to = spine_alias(), target.name
    with held(target) as now:
        row = TenantPlacement.objects.using(spine).select_for_update().filter(pk=tenant).first()
        if row is None:
            raise UnknownTenant(f"tenant {tenant!r} is placed on no data plane")
        if row.moving_to not in ("", to):
            raise InvalidTransition(f"tenant {tenant!r} is on its way to {row.moving_to!r}; finish that move first")
        if row.plane != to:
            if not row.moving_to:
                refuse_tenants(now)
                note_action("fence_tenant", actor)
            row.moving_to, row.moved_from = to, row.plane
            row.save(using=spine, update_fields=["moving_to", "moved_from"])
    return row


def _source_of(placement: TenantPlacement, to: str) -> str:
    """Where the rows come from; after the switch the placement only remembers it."""
    if placement.plane != to:
        return str(placement.plane)
    return str(placement.moved_from or to) if placement.moving_to else to


def freeze(source: str, tenant: str, to: str) -> None:
    """Fence everything: no turn in flight commits any more, nothing is accepted, nothing is due."""
    with transaction.atomic(using=source):
        freeze_schedules(source, tenant)
        epoch = raise_epoch(source, tenant, moved_to=to)
        freeze_schedules(source, tenant)  # those that were made before the tenant's row was locked
        for row in fence_all(source, tenant, epoch, moving=True):
            SpineWork(source).delete_all(row["id"]).run()
        Execution._base_manager.using(source).filter(tenant=tenant, moving=False).update(moving=True)
        frozen = Execution._base_manager.using(source).filter(tenant=tenant).values("pk")
        Outbox.objects.using(source).filter(execution_id__in=frozen).delete()


def _prepare(source: str, target: str, tenant: str) -> None:
    """Before the switch the target must know the epoch, and that it may accept."""
    epoch = TenantEpoch.objects.using(source).filter(pk=tenant).values_list("epoch", flat=True).first() or 0
    with transaction.atomic(using=target):
        raise_epoch(target, tenant, moved_to="", at_least=epoch + 1)


def _switch(placement: TenantPlacement, target: str, to: str, actor: str) -> None:
    """The one commit that decides where the tenant lives.

    Raises ``InvalidTransition`` where the placement was lost or changed in the meantime.
    """
    spine, tenant = spine_alias(), placement.tenant
    with transaction.atomic(using=spine):
        mine = TenantPlacement.objects.using(spine).filter(pk=tenant)
        if not mine.filter(plane=placement.plane, moving_to=to).update(plane=to):
            if mine.filter(plane=to).exists():
                return  # another operator has finished this part
            raise InvalidTransition(
                f"the placement of tenant {tenant!r} is not on its way from {placement.plane!r} to {to!r} any more;"
                f" place it on {placement.plane!r} if that was lost, and run the move again"
            )
        for page in pages(target, tenant):
            ExecutionRoute.objects.using(spine).filter(pk__in=page).update(plane=to)
        note_action("move_tenant", actor)


def release(target: str, tenant: str) -> int:
    """Let the copied executions go on under the target's epoch, with their intents; how many there are."""
    epoch = TenantEpoch.objects.using(target).get(pk=tenant).epoch
    moved = Execution._base_manager.using(target).filter(tenant=tenant)
    while frozen := list(moved.filter(moving=True).order_by("pk").values_list("pk", flat=True)[:BATCH]):
        with transaction.atomic(using=target):
            publish_standing(target, unfreeze(target, frozen, epoch))
    return moved.count()


def _finish(tenant: str) -> None:
    TenantPlacement.objects.using(spine_alias()).filter(pk=tenant).update(moving_to="", moved_from="")
