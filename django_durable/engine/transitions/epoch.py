"""Epoch: fence everything of a tenant that is under way, and either republish it or leave it frozen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from django_durable.dispatch import outbox
from django_durable.dispatch.outbox import insert_intent
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.locking import LOCKED, TABLE
from django_durable.engine.standing import standing_intent, standing_steps
from django_durable.engine.transitions import SOURCES, listed
from django_durable.errors import PlaneUnavailable
from django_durable.models import Execution, TenantEpoch
from django_durable.planes.registry import name_of
from django_durable.planes.selection import spine_alias
from django_durable.sql import Sql, build, columns, convert, execute, fetch, field_of, join, value

EPOCHS = TenantEpoch._meta.db_table


def bump_epoch(plane: str, tenant: str) -> int:
    """Raise the tenant's epoch: turns in flight can write nothing more, their work is republished. One transaction.

    Returns the new epoch. Starts that were accepted before carry the old one on their hints; those are replaced.
    Raises ``PlaneUnavailable`` while the tenant is being moved: what is frozen for that must stay so.
    """

    def attempt() -> int:
        with transaction.atomic(using=plane):
            epoch = raise_epoch(plane, tenant, moved_to=None)
            if TenantEpoch.objects.using(plane).filter(pk=tenant).exclude(moved_to="").exists():
                raise PlaneUnavailable(
                    f"tenant {tenant!r} is being moved to another data plane; finish that move first"
                )
            publish_standing(plane, fence_all(plane, tenant, epoch))
            return epoch

    return repeated(plane, attempt)


def publish_standing(plane: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Publish what the state of each of these locked rows stands for, within the plane's open transaction."""
    connection, joined = connections[plane], plane == spine_alias()
    for row in rows:
        intent = standing_intent(plane, row)
        if intent is None:
            SpineWork(plane).withdraw(row["id"], row["revision"]).run()
        for standing in [*([] if intent is None else [intent]), *standing_steps(plane, row)]:
            if joined:
                SpineWork(plane).publish(standing).run()
            else:
                execute(plane, insert_intent(connection, standing))
    if not joined:
        transaction.on_commit(lambda: _relay_all(plane), using=plane, robust=True)


def _relay_all(plane: str) -> None:
    while outbox.relay(plane, name_of(plane)):
        pass


def raise_epoch(plane: str, tenant: str, *, moved_to: str | None, at_least: int = 0) -> int:
    """Write the tenant's epoch row, exclusively: a start that reads it shared waits, and sees the new one.

    ``moved_to=None`` leaves as it is whether the tenant is leaving.
    """
    connection = connections[plane]
    statement = build(
        f"INSERT INTO {EPOCHS} (tenant, epoch, moved_to) VALUES ({{tenant}}, {{first}}, {{moved_to}})"
        f" ON CONFLICT (tenant) DO UPDATE SET moved_to = {'excluded' if moved_to is not None else EPOCHS}.moved_to,"
        f" epoch = CASE WHEN {EPOCHS}.epoch + 1 > excluded.epoch THEN {EPOCHS}.epoch + 1 ELSE excluded.epoch END"
        " RETURNING epoch",
        tenant=value(connection, field_of(TenantEpoch, "tenant"), tenant),
        first=Sql("%s", (max(1, at_least),)),
        moved_to=value(connection, field_of(TenantEpoch, "moved_to"), moved_to or ""),
    )
    return int(fetch(plane, statement)[0][0])


def fence_all(plane: str, tenant: str, epoch: int, *, moving: bool = False) -> Iterator[dict[str, Any]]:
    """Stamp every live execution of a tenant with the epoch and take its token away; the rows as they are then."""
    connection, name = connections[plane], "freeze" if moving else "bump_epoch"
    statement = build(
        f"UPDATE {TABLE} SET epoch = {{epoch}}, lease_token = NULL, worker = '', claimed_at = NULL,"
        " status = CASE WHEN status <> 'running' THEN status WHEN ending_as <> '' THEN 'compensating'"
        " ELSE 'pending' END, revision = revision + 1,"
        f" moving = {{moving}} WHERE tenant = {{tenant}} AND status IN ({listed(SOURCES[name])})"
        f" RETURNING {columns(Execution, LOCKED)}",
        epoch=Sql("%s", (epoch,)),
        moving=value(connection, field_of(Execution, "moving"), moving),
        tenant=value(connection, field_of(Execution, "tenant"), tenant),
    )
    for row in fetch(plane, statement):
        yield convert(connection, Execution, LOCKED, row)


def unfreeze(plane: str, ids: Sequence[UUID], epoch: int) -> list[dict[str, Any]]:
    """Let executions that were frozen for a move go on under an epoch; the live ones as they are then."""
    connection = connections[plane]
    statement = build(
        f"UPDATE {TABLE} SET moving = {{no}}, epoch = {{epoch}} WHERE id IN ({{ids}})"
        " AND moving = {yes}"
        f" RETURNING {columns(Execution, LOCKED)}",
        no=value(connection, field_of(Execution, "moving"), False),
        yes=value(connection, field_of(Execution, "moving"), True),
        epoch=Sql("%s", (epoch,)),
        ids=join(", ", [value(connection, field_of(Execution, "id"), one) for one in ids]),
    )
    rows = (convert(connection, Execution, LOCKED, row) for row in fetch(plane, statement))
    return [row for row in rows if row["status"] in SOURCES["unfreeze"]]
