"""The journal: one checkpoint a position, appended under the fence.

The fence is the execution's row: its token, its epoch, a status that runs, and no end that was asked for (undo
steps are recorded all the same). An append selects from that row ``FOR SHARE``, so it and a take-over wait for each
other; a weaker lock lets a dead worker's row through after the new owner has read the journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions import SOURCES, listed
from django_durable.models import Checkpoint, Execution
from django_durable.models.checkpoint import WHOLE
from django_durable.sql import (
    Sql,
    build,
    column_of,
    columns,
    convert,
    fetch,
    field_of,
    insert_row,
    is_postgres,
    join,
    value,
)

EXECUTION = Execution._meta.db_table
CHECKPOINT = Checkpoint._meta.db_table

LOADED = (
    "position",
    "item",
    "kind",
    "name",
    "status",
    "attempt",
    "begun",
    "lease_token",
    "encoded_output",
    "encoded_error",
    "wake_at",
    "started_at",
    "queued_at",
    "attempts_log",
)


@dataclass(slots=True, kw_only=True)
class Record:
    """One checkpoint as a turn reads it."""

    position: int
    item: int
    kind: str
    name: str
    status: str
    attempt: int
    begun: int
    lease_token: UUID | None
    encoded_output: str | None
    encoded_error: str | None
    wake_at: datetime | None
    started_at: datetime | None
    attempts_log: str
    queued_at: datetime | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether it was begun apart from the turn: the run may have gone on without its outcome."""
        return self.queued_at is not None or self.kind in ("child", "map")

    @property
    def is_over(self) -> bool:
        """Whether it has an outcome: done, failed for good, or called off by the run itself."""
        return self.status in ("completed", "failed") or (
            self.status == "cancelled" and self.encoded_error is not None
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """What is to be written of one checkpoint: changes of the pending one that was read, or a new one."""

    record: Record | None
    position: int
    kind: str
    name: str
    changes: Mapping[str, Any]
    item: int = WHOLE

    @property
    def more(self) -> dict[str, Any]:
        """What a new one has apart from its status."""
        return {name: change for name, change in self.changes.items() if name != "status"}


def load(using: str, execution_id: UUID) -> list[Record]:
    """The whole journal in order: one statement, in a snapshot of its own, after the claim's commit."""
    connection = connections[using]
    statement = build(
        f"SELECT {columns(Checkpoint, LOADED)} FROM {CHECKPOINT} WHERE execution_id = {{id}} ORDER BY position, item",
        id=value(connection, field_of(Checkpoint, "execution_id"), execution_id),
    )
    return [Record(**convert(connection, Checkpoint, LOADED, row)) for row in fetch(using, statement)]


def record_of(row: Mapping[str, Any], token: UUID) -> Record:
    """The record of a row that this turn has just appended."""
    known = {name: row[name] for name in Record.__dataclass_fields__ if name in row}
    return Record(**{**known, "lease_token": token})


def fence(claim: Claimed, *, alias: str = "e", undo: bool = False) -> Sql:
    """The condition under which this turn may write: its token, epoch and status, and no end asked for.

    Undo steps (``undo``, or ``claim.undoing`` for all that a turn writes) are recorded whatever it is to end as.
    """
    connection = connections[claim.using]

    def bound(name: str, item: object) -> Sql:
        return value(connection, field_of(Execution, name), item)

    not_ending = "" if undo or claim.undoing else f" AND {alias}.ending_as = ''"
    return build(
        f"{alias}.id = {{id}} AND {alias}.lease_token = {{token}} AND {alias}.epoch = {{epoch}}"
        f" AND {alias}.status IN ({listed(SOURCES['append'])}){not_ending}",
        id=bound("id", claim.id),
        token=bound("lease_token", claim.token),
        epoch=bound("epoch", claim.row["epoch"]),
    )


def row_for(claim: Claimed, position: int, kind: str, name: str, status: str, **more: Any) -> dict[str, Any]:
    """Every column of one checkpoint."""
    return {
        "position": position,
        "item": WHOLE,
        "kind": kind,
        "name": name,
        "status": status,
        "attempt": 0,
        "begun": 0,
        "queue": "",
        "queued_at": None,
        "recoveries": 0,
        "encoded_input": None,
        "encoded_output": None,
        "encoded_error": None,
        "wake_at": None,
        "started_at": None,
        "finished_at": None,
        "attempts_log": "",
        "log": "",
        **more,
    }


def fenced_insert(claim: Claimed, rows: Sequence[Mapping[str, Any]]) -> Sql:
    """Append rows, all at positions of their own, and tell whether a pause was asked for."""
    connection = connections[claim.using]
    lock = " FOR SHARE OF e" if is_postgres(connection) else ""
    names = list(rows[0])
    fields = [field_of(Checkpoint, name) for name in names]
    listed = ", ".join(column_of(field) for field in fields)
    tuples = [
        build("({row})", row=join(", ", [value(connection, f, row[f.attname]) for f in fields])) for row in rows
    ]
    return build(
        f"INSERT INTO {CHECKPOINT} (execution_id, lease_token, {listed})"
        f" SELECT e.id, e.lease_token, v.* FROM {EXECUTION} e CROSS JOIN (VALUES {{tuples}}) AS v"
        f" WHERE {{fence}}{lock} ON CONFLICT DO NOTHING"
        f" RETURNING (SELECT p.pause_requested_at IS NOT NULL FROM {EXECUTION} p WHERE p.id = execution_id)",
        tuples=join(", ", tuples),
        fence=fence(claim),
    )


def fenced_update(claim: Claimed, position: int, changes: Mapping[str, Any], *, item: int = WHOLE) -> Sql:
    """Change the pending checkpoint at a position, and tell whether a pause was asked for."""
    connection = connections[claim.using]
    sets = set_clause(claim, changes)
    where = build(
        f"c.position = {{position}} AND c.item = {item} AND c.status = 'pending'",
        position=value(connection, field_of(Checkpoint, "position"), position),
    )
    if is_postgres(connection):
        return build(
            f"WITH e AS (SELECT e.id, e.pause_requested_at FROM {EXECUTION} e WHERE {{fence}} FOR SHARE)"
            f" UPDATE {CHECKPOINT} c SET {{sets}} FROM e WHERE c.execution_id = e.id AND {{where}}"
            " RETURNING e.pause_requested_at IS NOT NULL",
            fence=fence(claim),
            sets=sets,
            where=where,
        )
    return build(
        f"UPDATE {CHECKPOINT} AS c SET {{sets}} WHERE {{where}}"
        f" AND c.execution_id = (SELECT e.id FROM {EXECUTION} e WHERE {{fence}})"
        f" RETURNING (SELECT p.pause_requested_at IS NOT NULL FROM {EXECUTION} p WHERE p.id = execution_id)",
        sets=sets,
        where=where,
        fence=fence(claim),
    )


def set_clause(claim: Claimed, changes: Mapping[str, Any]) -> Sql:
    """``column = value`` for the changes and for the writer's token."""
    connection = connections[claim.using]
    parts = []
    for name, item in {**changes, "lease_token": claim.token}.items():
        field = field_of(Checkpoint, name)
        bound = value(connection, field, item)
        parts.append(Sql(f"{field.column} = {bound.text}", bound.params))
    return join(", ", parts)


def insert_within(claim: Claimed, row: Mapping[str, Any]) -> Sql:
    """Insert one checkpoint as the consequence of a batch whose guard held the fence."""
    connection = connections[claim.using]
    values = {"execution_id": claim.id, "lease_token": claim.token, **row}
    return insert_row(connection, Checkpoint, values)


def update_within(claim: Claimed, position: int, changes: Mapping[str, Any], *, item: int = WHOLE) -> Sql:
    """Change one pending checkpoint as the consequence of a batch whose guard held the fence."""
    connection = connections[claim.using]
    return build(
        f"UPDATE {CHECKPOINT} SET {{sets}} WHERE execution_id = {{id}} AND position = {{position}}"
        f" AND item = {item} AND status = 'pending' AND {{guard}}",
        sets=set_clause(claim, changes),
        id=value(connection, field_of(Checkpoint, "execution_id"), claim.id),
        position=value(connection, field_of(Checkpoint, "position"), position),
    )
