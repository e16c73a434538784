"""Insert a schedule's row, and change one: by its declaration in code, or by an operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from django_durable.authoring.one_database import check_transaction
from django_durable.authoring.schedule import Policy
from django_durable.authoring.timing import Timing
from django_durable.clock import read_now
from django_durable.engine.reach import reaching
from django_durable.engine.tenancy import is_here
from django_durable.errors import PlaneUnavailable, ScheduleNotFound
from django_durable.models import Schedule
from django_durable.operators.schedules.rows import next_columns, policy_columns, timing_columns, timing_in
from django_durable.planes.presence import make_known
from django_durable.sql import build, fetch

__all__ = ["Held", "change", "held", "insert_schedule"]


def insert_schedule(
    using: str,
    now: datetime,
    identity: tuple[str, str],
    workflow: str,
    encoded_input: str,
    timing: Timing,
    policy: Policy,
    *,
    declared: str = "",
) -> bool:
    """Insert the row, in the open transaction; ``False``: there is one of this tenant and name.

    Its first time is the first one after now.

    Raises ``PlaneUnavailable`` while the tenant is leaving this plane.
    """
    tenant, name = identity
    make_known(using, tenant)
    if not fetch(using, build("SELECT 1 WHERE {here}", here=is_here(using, tenant))):
        raise PlaneUnavailable(f"tenant {tenant!r} is being moved to another data plane; try again shortly")
    row = Schedule(
        tenant=tenant,
        name=name,
        workflow=workflow,
        encoded_input=encoded_input,
        **timing_columns(timing),
        **policy_columns(policy),
        anchor_at=now,
        declared=declared,
        created_at=now,
    )
    for column, value in next_columns(row, timing_in(row).next(now)).items():
        setattr(row, column, value)
    before = Schedule.objects.using(using).filter(tenant=tenant, name=name)
    if before.exists():
        return False
    Schedule.objects.using(using).bulk_create([row], ignore_conflicts=True)
    return before.filter(pk=row.pk).exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A row that this transaction has locked, as it is now."""

    row: Schedule
    now: datetime


@contextmanager
def held(schedule: Schedule) -> Iterator[Held]:
    """Lock a schedule for an operator's change, in a transaction on its plane.

    Raises ``ScheduleNotFound`` where it is gone, ``PlaneUnavailable`` while its tenant is being moved.
    """
    using = schedule.using
    check_transaction(using)
    with reaching(using), transaction.atomic(using=using):
        rows = Schedule.objects.using(using).filter(pk=schedule.pk)
        rows.update(revision=F("revision"))  # a write is a lock on every database
        row = rows.first()
        if row is None:
            raise ScheduleNotFound(f"schedule {schedule.name!r} has been removed")
        if row.moving:
            raise PlaneUnavailable(f"tenant {row.tenant!r} is being moved to another data plane; try again shortly")
        yield Held(row=row, now=read_now(using))


def change(using: str, row: Schedule, now: datetime, columns: Mapping[str, Any]) -> None:
    """Write a locked row. A time that has come stays the next one; any other is looked for anew, from now on."""
    for name, value in columns.items():
        setattr(row, name, value)
    next_at = row.next_at if row.next_at <= now else timing_in(row).next(max(now, row.last_at or now))
    written = {**columns, **next_columns(row, next_at), "revision": row.revision + 1}
    Schedule.objects.using(using).filter(pk=row.pk).update(**written)
