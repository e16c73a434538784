"""A tenant's schedules on their way to another plane: frozen, copied with their record, released, removed."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet

from django_durable.errors import DurableError
from django_durable.models import OperatorNote, Schedule, ScheduleFire

__all__ = ["copy_schedules", "freeze_schedules", "release_schedules", "remove_schedules"]

BATCH = 500


def freeze_schedules(using: str, tenant: str) -> None:
    """Nothing fires or changes them any more. Before the tenant's row is locked, as a fire locks, and after."""
    Schedule.objects.using(using).filter(tenant=tenant, moving=False).update(moving=True)


def copy_schedules(source: str, target: str, tenant: str) -> None:
    """Copy what has not been released there; an interrupted copy is replaced. Raises ``DurableError``."""
    with transaction.atomic(using=target):
        remove_schedules(target, tenant)
        there = Schedule.objects.using(target).filter(tenant=tenant).values_list("pk", flat=True)
        rows = list(Schedule.objects.using(source).filter(tenant=tenant).exclude(pk__in=list(there)))
        Schedule.objects.using(target).bulk_create(rows)
        for schedule in rows:
            _copy(ScheduleFire.objects.using(source).filter(schedule_id=schedule.pk), target, renumbered=True)
            _copy(OperatorNote.objects.using(source).filter(execution_id=schedule.pk), target, renumbered=False)
            copied = ScheduleFire.objects.using(target).filter(schedule_id=schedule.pk).count()
            if copied != ScheduleFire.objects.using(source).filter(schedule_id=schedule.pk).count():
                raise DurableError(
                    f"the record of schedule {schedule.name!r} did not arrive whole on {target!r}; the tenant"
                    f" stays on {source!r}: run the move again"
                )


def _copy(rows: QuerySet[Any], target: str, *, renumbered: bool) -> None:
    model: type[Model] = rows.model
    batch: list[Any] = []
    for row in rows.order_by("pk").iterator(BATCH):
        row.pk = None if renumbered else row.pk
        batch.append(row)
        if len(batch) == BATCH:
            model._base_manager.using(target).bulk_create(batch)
            batch = []
    model._base_manager.using(target).bulk_create(batch)


def release_schedules(using: str, tenant: str) -> None:
    """They fire again, here."""
    Schedule.objects.using(using).filter(tenant=tenant, moving=True).update(moving=False)


def remove_schedules(using: str, tenant: str) -> None:
    """Delete the frozen ones with all that belongs to them."""
    frozen = Schedule.objects.using(using).filter(tenant=tenant, moving=True)
    doomed = list(frozen.values_list("pk", flat=True))
    ScheduleFire.objects.using(using).filter(schedule_id__in=doomed).delete()
    OperatorNote.objects.using(using).filter(execution_id__in=doomed).delete()
    rows = Schedule.objects.using(using).filter(pk__in=doomed)
    rows._raw_delete(using)
