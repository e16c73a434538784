"""Family: a child is started by its parent, its end is told to the parent, the parent's end closes its children.

The parent's row is locked before the child's, always. A parent that is being closed is locked exclusively, so a start
under its fence and its end cannot miss each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from django_durable.clock import sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.chain import current_id
from django_durable.engine.locking import LOCKED, TABLE, lock_execution
from django_durable.engine.telling import tell
from django_durable.engine.transitions import SOURCES, listed, wants_results
from django_durable.engine.transitions.fan_in import lock_owner, settle
from django_durable.engine.transitions.leave import ENDED, cancel_pending, ended_columns
from django_durable.engine.transitions.singleton import free_slot
from django_durable.engine.transitions.start import Order, insert_execution
from django_durable.engine.undos import COMPENSATE, has_undos
from django_durable.errors import ChildFailed, ExecutionConflict, ExecutionNotFound, QueueFull
from django_durable.models import Checkpoint, Execution
from django_durable.models.checkpoint import WHOLE
from django_durable.payloads import decode_failure, encode_failure
from django_durable.signals import execution_finished
from django_durable.sql import (
    Sql,
    assignments,
    build,
    columns,
    convert,
    execute,
    fetch,
    field_of,
    is_postgres,
    join,
    value,
)

STORED = (
    "workflow",
    "version",
    "source_digest",
    "encoded_input",
    "queue",
    "priority",
    "key",
    "run_after",
    "timeout_seconds",
    "max_recoveries",
    "tags",
    "correlation_id",
    "parent_close",
    "budget",
    "singleton",
    "singleton_limit",
    "singleton_depth",
    "singleton_policy",
)


def start_child(
    using: str, parent: Mapping[str, Any], position: int, item: int, order: Order
) -> dict[str, Any] | None:
    """Start a child for a pending checkpoint of its parent, whose row the caller holds.

    It lives on its parent's plane, under its parent's tenant. Where its key is taken it cannot start: that is its
    end, which is for the caller to write into the parent's checkpoint.
    """
    born = replace(
        order,
        tenant=parent["tenant"],
        parent_id=parent["id"],
        parent_position=position,
        parent_item=item,
        root_id=parent["root_id"],
        correlation_id=order.correlation_id or parent["correlation_id"],
    )
    try:
        started = insert_execution(using, born)
    except QueueFull as full:
        return _failure(using, order.workflow, "", "failed", encode_failure(full))
    if started is not None:
        return None
    taken = ExecutionConflict(
        f"key {order.key!r} of workflow {order.workflow!r} is taken by another execution; the child did not start"
    )
    return _failure(using, order.workflow, "", "failed", encode_failure(taken))


def start_only_child(using: str, parent: Mapping[str, Any], position: int, order: Order) -> None:
    """Start the child of a position that is no map; its parent's turn is running."""
    ended = start_child(using, parent, position, WHOLE, order)
    if ended is not None:
        settle(using, parent, position, WHOLE, ended, Sql("1 = 1"))


def store_order(order: Order) -> str:
    """What is needed to start this child later, from whatever process makes room for it."""
    stored = {name: member for name, member in asdict(order).items() if name in STORED}
    return json.dumps({**stored, "run_after": order.run_after and order.run_after.isoformat()})


def start_stored_child(
    using: str, parent: Mapping[str, Any], position: int, item: int, stored: str
) -> dict[str, Any] | None:
    """Start a child that was stored with its item; its end, where its key is taken."""
    order: dict[str, Any] = json.loads(stored)
    moment = order.get("run_after")
    order["run_after"] = None if moment is None else datetime.fromisoformat(moment)
    return start_child(using, parent, position, item, Order(**order))


def hold_parent(using: str, execution_id: UUID, *, wait: bool = True) -> dict[str, Any] | None:
    """Lock the parent's row before the child's; ``None``: it has none, or the parent is gone.

    ``wait=False`` raises ``ExecutionBusy`` where another transaction holds it.
    """
    connection = connections[using]
    own = value(connection, field_of(Execution, "id"), execution_id)
    rows = fetch(using, build(f"SELECT parent_id FROM {TABLE} WHERE id = {{id}} AND parent_id IS NOT NULL", id=own))
    if not rows:
        return None
    return hold(using, convert(connection, Execution, ["parent_id"], rows[0])["parent_id"], wait=wait)


def hold_current(using: str, execution_id: UUID) -> tuple[dict[str, Any] | None, datetime, dict[str, Any]]:
    """Lock the parent of a chain's current run, then that run, also where the chain goes on meanwhile."""
    while True:
        execution_id = current_id(using, execution_id)
        parent = hold_parent(using, execution_id)
        now, row = lock_execution(using, execution_id)
        if row["status"] != "continued":
            return parent, now, row


def hold(using: str, parent_id: UUID | None, *, wait: bool = True) -> dict[str, Any] | None:
    """Lock a parent's row; ``None``: there is none."""
    if parent_id is None:
        return None
    try:
        return lock_owner(using, parent_id, wait=wait)
    except ExecutionNotFound:
        return None


def tell_parent(
    using: str,
    parent: Mapping[str, Any] | None,
    child: Mapping[str, Any],
    *,
    status: str,
    output: str | None = None,
    error: str | None = None,
) -> None:
    """Write a child's end into the checkpoint that its parent has for it, and wake the parent if it waits for it."""
    if parent is None or not wants_results(parent):
        return
    changes = outcome(using, child["workflow"], child["id"], status=status, output=output, error=error)
    item = WHOLE if child["parent_item"] is None else child["parent_item"]
    settle(using, parent, child["parent_position"], item, changes, _is_its_child(using, child["id"]))


def _is_its_child(using: str, child_id: UUID) -> Sql:
    """The condition that a checkpoint ``c`` is for this child: a retry may have put another one in its place."""
    return build(
        f"c.kind = 'child' AND EXISTS (SELECT 1 FROM {TABLE} k WHERE k.id = {{id}} AND k.parent_id = c.execution_id)",
        id=value(connections[using], field_of(Execution, "id"), child_id),
    )


def outcome(
    using: str, workflow: str, child_id: UUID, *, status: str, output: str | None, error: str | None
) -> dict[str, Any]:
    """A child's end as its parent's checkpoint shows it."""
    if status == "completed":
        return {
            "status": "completed",
            "attempt": 1,
            "encoded_output": output,
            "encoded_error": None,
            "finished_at": sql_now(connections[using]),
        }
    return _failure(using, workflow, str(child_id), status, error)


def _failure(using: str, workflow: str, child_id: str, status: str, error: str | None) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "", "message": "", "traceback": "", "lineage": []}
    if error is not None:
        told = decode_failure(error)
    more: dict[str, Any] = {"workflow": workflow, "status": status, "child": child_id}
    more |= {"error_type": told["type"], "error_lineage": list(told["lineage"])}
    failed = ChildFailed(told["message"], workflow=workflow, status=status, child_id=child_id)
    encoded = encode_failure(failed, message=told["message"], traceback=told["traceback"], **more)
    now = sql_now(connections[using])
    return {"status": "failed", "attempt": 1, "encoded_output": None, "encoded_error": encoded, "finished_at": now}


def close_children(using: str, parent_ids: Sequence[UUID]) -> None:
    """End what an execution that has ended leaves running, level by level, unless it is to be left alone.

    One routine for every end of a parent, and for the beginning of its undo. Children that have something to undo do
    that first. The caller has written the parents' rows in this transaction.
    """
    _close(using, parent_ids, Sql(""))


def close_started_at(using: str, parent_id: UUID, positions: Sequence[int]) -> None:
    """End the children that were started at these positions, and theirs."""
    bound = [value(connections[using], field_of(Execution, "parent_position"), position) for position in positions]
    _close(using, [parent_id], build(" AND c.parent_position IN ({positions})", positions=join(", ", bound)))


def _close(using: str, parent_ids: Sequence[UUID], which: Sql) -> None:
    while parent_ids:
        _undo_first(using, parent_ids, which)
        ended = _cancel_level(using, parent_ids, which)
        which = Sql("")
        for row in ended:
            execute(using, cancel_pending(using, row["id"]))
            SpineWork(using).delete_all(row["id"]).run()
            free_slot(using, row)
            tell(using, execution_finished, row["id"])
        parent_ids = [row["id"] for row in ended]


def _undo_first(using: str, parent_ids: Sequence[UUID], which: Sql) -> None:
    """Have those children that registered undo steps run them, each closing its own children."""
    from django_durable.engine.transitions.undo import Ending, ask_undo, begin_undo

    # A running one may have registered some that this transaction's snapshot does not show.
    statement = build(
        f"SELECT c.id FROM {TABLE} c WHERE {{closing}} AND (c.status = 'running' OR EXISTS"
        f" (SELECT 1 FROM {Checkpoint._meta.db_table} u WHERE u.execution_id = c.id AND u.kind = '{COMPENSATE}'))"
        " ORDER BY c.id",
        closing=_closing(using, parent_ids, which),
    )
    for raw in fetch(using, statement):
        child_id = convert(connections[using], Execution, ["id"], raw)["id"]
        _now, row = lock_execution(using, child_id)
        if row["status"] in SOURCES["cancel"] and not row["ending_as"] and has_undos(using, row):
            asked = {"cancel_requested_at": sql_now(connections[using])}
            begin = ask_undo if row["status"] == "running" else begin_undo
            begin(using, row, Ending(status="cancelled"), asked)


def _closing(using: str, parent_ids: Sequence[UUID], which: Sql) -> Sql:
    """The condition on children ``c`` that end with their parents."""
    bound = [value(connections[using], field_of(Execution, "parent_id"), one) for one in parent_ids]
    return build(
        "c.parent_id IN ({ids}){which} AND c.parent_close = 'cancel' AND c.ending_as = ''"
        f" AND c.status IN ({listed(SOURCES['cancel'])})",
        ids=join(", ", bound),
        which=which,
    )


def _cancel_level(using: str, parent_ids: Sequence[UUID], which: Sql) -> list[dict[str, Any]]:
    connection = connections[using]
    now = sql_now(connection)
    changes = {
        **ENDED,
        **ended_columns(),
        "status": "cancelled",
        "in_line": False,
        "cancel_requested_at": now,
        "encoded_output": None,
        "encoded_error": None,
        "finished_at": now,
    }
    locked = " ORDER BY c.id FOR UPDATE" if is_postgres(connection) else ""
    statement = build(
        f"UPDATE {TABLE} AS e SET {{changes}} WHERE e.id IN (SELECT c.id FROM {TABLE} c WHERE {{closing}}{locked})"
        f" RETURNING {columns(Execution, LOCKED)}",
        changes=assignments(connection, Execution, changes),
        closing=_closing(using, parent_ids, which),
    )
    return [convert(connection, Execution, LOCKED, row) for row in fetch(using, statement)]
