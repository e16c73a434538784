"""Await results: of what the run has started elsewhere. Look under the row's exclusive lock, then suspend or go on.

Whoever ends such work holds the same row: either its result is seen here, or it finds the execution waiting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections

from django_durable.engine.claimed import Claimed
from django_durable.engine.isolation import read_committed
from django_durable.engine.journal import CHECKPOINT, LOADED, Record, insert_within
from django_durable.engine.transitions.family import outcome
from django_durable.engine.transitions.fan_in import settle
from django_durable.engine.transitions.leave import Pages, suspend
from django_durable.engine.transitions.wait import lock_fenced
from django_durable.models import Checkpoint, Execution
from django_durable.models.checkpoint import WHOLE
from django_durable.models.execution import TERMINAL
from django_durable.sql import Sql, build, columns, convert, execute, fetch, field_of, join, value

Items = Mapping[int, Sequence[Record]]


@dataclass(frozen=True, slots=True)
class Found:
    """What there was to see: nothing, because the fence refused or the execution now waits, or the records."""

    refused: bool = False
    records: Sequence[Record] | None = None


def await_results(
    claim: Claimed,
    pages: Pages,
    positions: Sequence[int],
    enough: Callable[[Sequence[Record]], bool],
    *,
    awaiting: Sequence[object],
    wake_at: datetime | None = None,
) -> Found:
    """The records at these positions, items included, if they are ``enough``; otherwise the execution waits.

    ``pages`` is written either way. One transaction.
    """
    using = claim.using
    with read_committed(using):
        if not lock_fenced(claim):
            return Found(refused=True)
        records = read_records(claim, positions)
        if adopt_ended_children(claim, records):
            records = read_records(claim, positions)
        if not enough(records):
            held = suspend(claim, pages, wake_at=wake_at, awaiting=json.dumps(list(awaiting)))
            return Found(refused=not held)
        for row in pages.rows:
            execute(using, insert_within(claim, row))
        return Found(records=records)


def read_records(claim: Claimed, positions: Sequence[int]) -> list[Record]:
    """The checkpoints at these positions, in order."""
    connection = connections[claim.using]
    statement = build(
        f"SELECT {columns(Checkpoint, LOADED)} FROM {CHECKPOINT} WHERE execution_id = {{id}}"
        " AND position IN ({positions}) ORDER BY position, item",
        id=value(connection, field_of(Checkpoint, "execution_id"), claim.id),
        positions=join(", ", [value(connection, field_of(Checkpoint, "position"), p) for p in positions]),
    )
    return [Record(**convert(connection, Checkpoint, LOADED, row)) for row in fetch(claim.using, statement)]


def adopt_ended_children(claim: Claimed, records: Sequence[Record]) -> bool:
    """Take over the end of children that nobody told of: ended before this run was reopened, or deleted.

    The child's row is the truth, what it told its parent only a notice. Whether there was any.
    """
    pending = {(r.position, r.item): r for r in records if r.kind == "child" and r.status == "pending"}
    if not pending:
        return False
    children = Execution._base_manager.using(claim.using).filter(
        parent_id=claim.id, parent_position__in={position for position, _item in pending}
    )
    found: dict[tuple[int | None, int], Any] = {}
    for child in children.order_by("created_at", "id").values(
        "id", "workflow", "status", "parent_position", "parent_item", "encoded_output", "encoded_error"
    ):
        item = WHOLE if child["parent_item"] is None else child["parent_item"]
        found[(child["parent_position"], item)] = child
    adopted = False
    for place, record in pending.items():
        adopted = _adopt(claim, record, found.get(place)) or adopted
    return adopted


def _adopt(claim: Claimed, record: Record, child: Mapping[str, Any] | None) -> bool:
    if child is None:
        if record.item > WHOLE and record.queued_at is None:
            return False  # not started yet
        ended = outcome(claim.using, record.name, claim.id, status="deleted", output=None, error=None)
    elif child["status"] in TERMINAL and child["status"] != "continued":
        ended = outcome(
            claim.using,
            record.name,
            child["id"],
            status=child["status"],
            output=child["encoded_output"],
            error=child["encoded_error"],
        )
    else:
        return False
    running = {**claim.row, "status": "running"}
    return settle(claim.using, running, record.position, record.item, ended, Sql("c.kind = 'child'"))
