"""The SQL of the hint table.

Publishing inserts and never touches a leased hint. Acknowledging deletes exactly (id, token). Every ending
deletes what is left, so the table follows the work in flight, not history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import connections

from django_durable.clock import sql_after, sql_now
from django_durable.dispatch.definitions import definition_hash, tenant_hash
from django_durable.ids import random_id
from django_durable.models.hint import DispatchHint
from django_durable.models.outbox import Outbox
from django_durable.models.queue_limit import QueueLimit
from django_durable.sql import (
    Sql,
    assignments,
    build,
    convert,
    fetch,
    field_of,
    insert_row,
    is_postgres,
    join,
    value,
)

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

TABLE = DispatchHint._meta.db_table
QUEUES = QueueLimit._meta.db_table

ONE_LANE = "-"
"""The lane of what takes turns with nobody in a queue with limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What an execution wants: to be run, at or after ``due_at`` (``None``: now), or one of its steps elsewhere.

    ``revision`` of a turn is the execution's, of a step elsewhere the number of its attempt.
    """

    execution_id: UUID
    workflow: str
    version: str
    revision: int
    epoch: int | Sql
    queue: str
    priority: int
    due_at: datetime | Sql | None = None
    state: int = DispatchHint.State.LIVE
    avoid: str = ""
    kind: int = DispatchHint.Kind.TURN
    position: int = -1
    item: int = -1
    tenant: str = ""
    opening: bool = False
    """Whether it begins an execution, or an attempt elsewhere."""


def insert_hint(connection: BaseDatabaseWrapper, intent: Intent, hint_id: UUID | None = None) -> Sql:
    """Insert the intent's hint where the batch's guard held; a hint that exists already is left alone."""
    values = {
        "id": hint_id or random_id(),
        "kind": intent.kind,
        "state": intent.state,
        "execution_id": intent.execution_id,
        "position": intent.position,
        "item": intent.item,
        "plane": "",
        "revision": intent.revision,
        "epoch": intent.epoch,
        "queue": intent.queue,
        "priority": intent.priority,
        "definition": (definition := definition_hash(intent.workflow, intent.version)),
        "lane": lane_in(connection, intent.queue, tenant_hash(intent.tenant), definition),
        "opening": intent.opening,
        "avoid": intent.avoid,
        "due_at": intent.due_at or sql_now(connection),
        "owner": "",
        "revoked": False,
        "failures": 0,
        "category": "",
    }
    return insert_row(connection, DispatchHint, values, on_conflict="ON CONFLICT DO NOTHING")


def insert_stored_hint(connection: BaseDatabaseWrapper, row: Outbox, plane: str, hint_id: UUID) -> Sql:
    """Insert the hint of a plane's outbox row; one that exists already is left alone."""
    values = {
        "id": hint_id,
        "kind": row.kind,
        "state": row.state,
        "execution_id": row.execution_id,
        "position": row.position,
        "item": row.item,
        "plane": plane,
        "revision": row.revision,
        "epoch": row.epoch,
        "queue": row.queue,
        "priority": row.priority,
        "definition": row.definition,
        "lane": lane_in(connection, row.queue, row.lane, row.definition),
        "opening": row.opening,
        "avoid": row.avoid,
        "due_at": row.due_at,
        "owner": "",
        "revoked": False,
        "failures": 0,
        "category": "",
    }
    return insert_row(connection, DispatchHint, values, on_conflict="ON CONFLICT DO NOTHING")


def lane_in(connection: BaseDatabaseWrapper, queue: str, tenant: str, definition: str) -> Sql:
    """Who a hint takes turns with, in a queue with limits; nobody in any other.

    The spine's row decides, so that it makes no difference which process publishes.
    """
    return build(
        "COALESCE((SELECT CASE q.fair WHEN 'tenant' THEN {tenant} WHEN 'workflow' THEN {definition}"
        f" ELSE '{ONE_LANE}' END FROM {QUEUES} q WHERE q.name = {{queue}}), '')",
        tenant=_value(connection, "lane", tenant),
        definition=_value(connection, "lane", definition),
        queue=_value(connection, "queue", queue),
    )


def delete_older(connection: BaseDatabaseWrapper, execution_id: UUID, revision: int) -> Sql:
    """Delete the unleased hints of an execution's earlier turns, leaving locked ones to their holder."""
    skip = "FOR UPDATE SKIP LOCKED" if is_postgres(connection) else ""
    return build(
        f"DELETE FROM {TABLE} WHERE id IN (SELECT id FROM {TABLE} WHERE execution_id = {{id}}"
        f" AND kind = {DispatchHint.Kind.TURN:d} AND revision < {{revision}} AND token IS NULL {skip}) AND {{guard}}",
        id=_value(connection, "execution_id", execution_id),
        revision=_value(connection, "revision", revision),
    )


def delete_all(connection: BaseDatabaseWrapper, execution_id: UUID) -> Sql:
    """Delete every hint of an execution that has ended; a holder's next renewal finds its lease gone."""
    return build(
        f"DELETE FROM {TABLE} WHERE execution_id = {{id}} AND {{guard}}",
        id=_value(connection, "execution_id", execution_id),
    )


def delete_steps(connection: BaseDatabaseWrapper, execution_id: UUID, positions: Sequence[int]) -> Sql:
    """Delete the hints of steps at these positions, whoever holds them."""
    return build(
        f"DELETE FROM {TABLE} WHERE execution_id = {{id}} AND kind = {DispatchHint.Kind.STEP:d}"
        " AND position IN ({positions}) AND {guard}",
        id=_value(connection, "execution_id", execution_id),
        positions=join(", ", [_value(connection, "position", position) for position in positions]),
    )


def acknowledge(connection: BaseDatabaseWrapper, hint_id: UUID, token: UUID) -> Sql:
    """Delete one hint that this token holds."""
    return build(
        f"DELETE FROM {TABLE} WHERE id = {{id}} AND token = {{token}} AND {{guard}}",
        id=_value(connection, "id", hint_id),
        token=_value(connection, "token", token),
    )


def revoke(connection: BaseDatabaseWrapper, execution_id: UUID) -> Sql:
    """Tell the holder of the execution's lease, at its next renewal, that its work is no longer wanted."""
    changes = assignments(connection, DispatchHint, {"revoked": True})
    return build(
        f"UPDATE {TABLE} SET {{changes}} WHERE execution_id = {{id}} AND token IS NOT NULL AND {{guard}}",
        changes=changes,
        id=_value(connection, "execution_id", execution_id),
    )


def put_back(connection: BaseDatabaseWrapper, hint_id: UUID, token: UUID, due_at: datetime | Sql) -> Sql:
    """Give up the lease on one hint; it is due again at ``due_at``."""
    changes = assignments(connection, DispatchHint, {"token": None, "owner": "", "due_at": due_at})
    return build(
        f"UPDATE {TABLE} SET {{changes}} WHERE id = {{id}} AND token = {{token}} AND {{guard}}",
        changes=changes,
        id=_value(connection, "id", hint_id),
        token=_value(connection, "token", token),
    )


@dataclass(frozen=True, slots=True)
class Renewal:
    """What the database said of one lease: still held, or not, and whether its work was revoked."""

    hint_id: UUID
    revoked: bool


def renew(using: str, held: Sequence[tuple[UUID, UUID]], lease_seconds: float) -> tuple[list[Renewal], list[UUID]]:
    """Extend leases given as (hint id, token); returns what was renewed and which hints were locked.

    In key order, skipping rows that another transaction holds: those are *unknown*, not lost. In a queue with limits
    a lease that has lapsed is lost: its slot may have gone to others.
    """
    connection = connections[using]
    pairs = join(", ", [_pair(connection, hint_id, token) for hint_id, token in sorted(held)])
    due = sql_after(connection, lease_seconds)
    alive = build("(h.lane = '' OR h.due_at > {now})", now=sql_now(connection))
    if not is_postgres(connection):
        # By the ids first: SQLite searches no index for a pair.
        rows = fetch(
            using,
            build(
                f"UPDATE {TABLE} AS h SET due_at = {{due}} WHERE id IN ({{ids}}) AND (id, token) IN"
                " (VALUES {pairs}) AND {alive} RETURNING id, revoked",
                due=due,
                ids=join(", ", [_value(connection, "id", hint_id) for hint_id, _token in sorted(held)]),
                pairs=pairs,
                alive=alive,
            ),
        )
        return [Renewal(UUID(row[0]), bool(row[1])) for row in rows], []
    rows = fetch(
        using,
        build(
            f"WITH mine AS (SELECT id FROM {TABLE} h WHERE (id, token) IN (VALUES {{pairs}})"
            f" AND {{alive}} ORDER BY id FOR UPDATE SKIP LOCKED), renewed AS (UPDATE {TABLE} h SET due_at = {{due}}"
            " FROM mine WHERE h.id = mine.id RETURNING h.id, h.revoked)"
            f" SELECT h.id, renewed.revoked FROM {TABLE} h LEFT JOIN renewed ON renewed.id = h.id"
            " WHERE (h.id, h.token) IN (VALUES {pairs}) AND {alive}",
            pairs=pairs,
            alive=alive,
            due=due,
        ),
    )
    renewed = [Renewal(row[0], row[1]) for row in rows if row[1] is not None]
    return renewed, [row[0] for row in rows if row[1] is None]


def hinted(using: str, execution_ids: Sequence[UUID]) -> dict[UUID, int]:
    """The newest revision that each of these executions has a turn's hint of, whatever its state: one look-up each.

    By its order, so that no planner reads the whole table instead, whatever it believes about it.
    """
    if not execution_ids:
        return {}
    connection = connections[using]
    wanted = [build("({id})", id=_value(connection, "execution_id", one)) for one in execution_ids]
    statement = build(
        f"WITH wanted(id) AS (VALUES {{wanted}}) SELECT id, (SELECT h.revision FROM {TABLE} h"
        f" WHERE h.execution_id = wanted.id AND h.kind = {DispatchHint.Kind.TURN:d}"
        " ORDER BY h.revision DESC LIMIT 1) FROM wanted",
        wanted=join(", ", wanted),
    )
    names = ("execution_id", "revision")
    found = (convert(connection, DispatchHint, names, row) for row in fetch(using, statement))
    return {row["execution_id"]: row["revision"] for row in found if row["revision"] is not None}


def _pair(connection: BaseDatabaseWrapper, hint_id: UUID, token: UUID) -> Sql:
    return build("({id}, {token})", id=_value(connection, "id", hint_id), token=_value(connection, "token", token))


def _value(connection: BaseDatabaseWrapper, name: str, item: object) -> Sql:
    return value(connection, field_of(DispatchHint, name), item)
