"""Epoch: fence everything of a tenant that is under way, and either republish it or leave it frozen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connections, transaction

from django_durable.dispatch import outbox
from django_durable.dispatch.outbox import insert_intent
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.locking import LOCKED, TABLE
from django_durable.engine.standing import standing_intent
from django_durable.models import Execution, TenantEpoch
from django_durable.models.execution import ACTIVE
from django_durable.planes.registry import name_of
from django_durable.planes.selection import spine_alias
from django_durable.sql import Sql, build, columns, convert, execute, fetch, field_of, value

EPOCHS = TenantEpoch._meta.db_table


def bump_epoch(plane: str, tenant: str) -> int:
    """Raise the tenant's epoch: turns in flight can write nothing more, their work is republished. One transaction.

    Returns the new epoch. Starts that were accepted before carry the old one on their hints; those are replaced.
    """

    def attempt() -> int:
        with transaction.atomic(using=plane):
            epoch = raise_epoch(plane, tenant, moved_to="")
            for row in fence_all(plane, tenant, epoch):
                intent = standing_intent(plane, row)
                if intent is None:
                    SpineWork(plane).withdraw(row["id"], row["revision"]).run()
                elif plane == spine_alias():
                    SpineWork(plane).publish(intent).run()
                else:
                    execute(plane, insert_intent(connections[plane], intent))
            if plane != spine_alias():
                transaction.on_commit(lambda: _relay_all(plane), using=plane, robust=True)
            return epoch

    return repeated(plane, attempt)


def _relay_all(plane: str) -> None:
    while outbox.relay(plane, name_of(plane)):
        pass


def raise_epoch(plane: str, tenant: str, *, moved_to: str, at_least: int = 0) -> int:
    """Write the tenant's epoch row, exclusively: a start that reads it shared waits, and sees the new one."""
    connection = connections[plane]
    statement = build(
        f"INSERT INTO {EPOCHS} (tenant, epoch, moved_to) VALUES ({{tenant}}, {{first}}, {{moved_to}})"
        " ON CONFLICT (tenant) DO UPDATE SET moved_to = excluded.moved_to, epoch ="
        f" CASE WHEN {EPOCHS}.epoch + 1 > excluded.epoch THEN {EPOCHS}.epoch + 1 ELSE excluded.epoch END"
        " RETURNING epoch",
        tenant=value(connection, field_of(TenantEpoch, "tenant"), tenant),
        first=Sql("%s", (max(1, at_least),)),
        moved_to=value(connection, field_of(TenantEpoch, "moved_to"), moved_to),
    )
    return int(fetch(plane, statement)[0][0])


def fence_all(plane: str, tenant: str, epoch: int, *, moving: bool = False) -> Iterator[dict[str, Any]]:
    """Stamp every live execution of a tenant with the epoch and take its token away; the rows as they are then."""
    connection = connections[plane]
    live = ", ".join(f"'{status}'" for status in ACTIVE)
    statement = build(
        f"UPDATE {TABLE} SET epoch = {{epoch}}, lease_token = NULL, worker = '', claimed_at = NULL,"
        " status = CASE WHEN status <> 'running' THEN status WHEN ending_as <> '' THEN 'compensating'"
        " ELSE 'pending' END, revision = revision + 1,"
        f" moving = {{moving}} WHERE tenant = {{tenant}} AND status IN ({live})"
        f" RETURNING {columns(Execution, LOCKED)}",
        epoch=Sql("%s", (epoch,)),
        moving=value(connection, field_of(Execution, "moving"), moving),
        tenant=value(connection, field_of(Execution, "tenant"), tenant),
    )
    for row in fetch(plane, statement):
        yield convert(connection, Execution, LOCKED, row)
