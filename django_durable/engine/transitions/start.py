"""Start: the execution and the intent to run it, in the caller's transaction."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, OperationalError, connections, transaction

from django_durable.clock import sql_after, sql_now
from django_durable.dispatch.hints import Intent
from django_durable.dispatch.spine_work import SpineWork
from django_durable.durations import aware
from django_durable.engine.contention import repeated
from django_durable.engine.telling import tell
from django_durable.engine.tenancy import is_here
from django_durable.engine.transitions.singleton import Place, enter, give_up, make_room, mark_of
from django_durable.errors import ExecutionConflict, PlaneUnavailable, QueueFull
from django_durable.ids import time_ordered_id
from django_durable.models import Execution, ExecutionRoute, TenantEpoch
from django_durable.models.execution import TERMINAL
from django_durable.payloads import same_value
from django_durable.planes.presence import make_known
from django_durable.planes.registry import name_of
from django_durable.planes.selection import spine_alias
from django_durable.signals import execution_started
from django_durable.sql import (
    Sql,
    build,
    columns,
    convert,
    execute,
    field_of,
    insert_row,
    is_postgres,
    run_guarded,
    value,
)

TABLE = Execution._meta.db_table
RETURNED = tuple(f.attname for f in Execution._meta.concrete_fields if f.name != "tags")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One start, bound and encoded; nothing of it depends on the process that asked."""

    workflow: str
    version: str
    source_digest: str
    encoded_input: str
    queue: str
    priority: int
    tenant: str = ""
    key: str | None = None
    on_conflict: str = "existing"
    run_after: datetime | None = None
    scheduled_for: datetime | None = None
    timeout_seconds: float | None = None
    max_recoveries: int | None = None
    tags: Mapping[str, Any] = field(default_factory=dict)
    correlation_id: str = ""
    parent_close: str = "cancel"
    parent_id: UUID | None = None
    parent_position: int | None = None
    parent_item: int | None = None
    root_id: UUID | None = None
    budget: str = ""
    singleton: str | None = None
    singleton_limit: int = 0
    singleton_depth: int | None = None
    singleton_policy: str = "queue"
    id: UUID = field(default_factory=time_ordered_id)

    @property
    def current_key(self) -> str | None:
        """The chain's unique mark; ``None`` without a key."""
        return None if self.key is None else chain_mark(self.tenant, self.workflow, self.key)


def chain_mark(tenant: str, workflow: str, key: str) -> str:
    """What stands in ``current_key`` of the newest run of a key."""
    return hashlib.sha256("\x00".join((tenant, workflow, key)).encode()).hexdigest()


def start(using: str, order: Order) -> Execution[Any]:
    """Insert the execution, or find the one with this key; ``is_new`` on the instance says which.

    One statement on PostgreSQL; a duplicate key or an isolation level other than READ COMMITTED costs two more.
    Raises ``ExecutionConflict`` for another input under the same key, with ``on_conflict="error"`` for any
    existing one, and where this transaction's snapshot cannot see the winner.
    """
    condition = "" if order.key is None else _only_read_committed(using)
    return insert_execution(using, order, condition) or _start_again(using, order)


def _only_read_committed(using: str) -> str:
    """In a snapshot that stands still a conflict is an error that ends the caller's transaction: not tried."""
    if is_postgres(connections[using]):
        return " AND current_setting('transaction_isolation') = 'read committed'"
    return ""


def insert_execution(using: str, order: Order, condition: str = "") -> Execution[Any] | None:
    """Insert the execution with its first intent; ``None``: its key is taken, or the condition does not hold.

    Of a singleton without its intent, where it has to wait. Raises ``QueueFull`` where it may not.
    """
    if order.singleton is None:
        return _insert(using, order, condition)
    place = Place(order.id, mark_of(order.tenant, order.workflow, order.singleton), order.singleton_limit)
    try:
        with transaction.atomic(using=using):
            admitted = enter(using, place, order.singleton_depth, order.singleton_policy)
            started = _insert(using, order, condition, in_line=not admitted)
            if started is None:
                give_up(using, place.execution_id)
            elif not admitted:
                make_room(using, place, order.singleton_policy)
    except QueueFull:
        if order.key is None or _current(using, order) is None:
            raise
        return None  # the key's execution is the answer, however full it is
    if started is not None and not admitted:
        started.refresh_from_db(using=using)  # room may have been made for it
        started.is_new = True
    return started


def _insert(using: str, order: Order, condition: str, *, in_line: bool = False) -> Execution[Any] | None:
    connection = connections[using]
    write_route(using, order.id)
    make_known(using, order.tenant)
    guard = insert_row(
        connection,
        Execution,
        _columns(using, order, in_line=in_line),
        source=build(f"FROM (SELECT 1 AS one) AS one WHERE {{here}}{condition}", here=is_here(using, order.tenant)),
        on_conflict=f"ON CONFLICT (current_key) DO NOTHING RETURNING {columns(Execution, RETURNED)}",
    )
    intent = Intent(
        execution_id=order.id,
        workflow=order.workflow,
        version=order.version,
        revision=1,
        epoch=_started_epoch(using, order),
        queue=order.queue,
        priority=order.priority,
        tenant=order.tenant,
        opening=True,
        due_at=order.run_after,
    )
    work = SpineWork(using) if in_line else SpineWork(using).publish(intent, first=True)
    rows = repeated(using, lambda: run_guarded(using, guard, work.consequences()))
    if not rows:
        return None
    work.finish()
    tell(using, execution_started, order.id)
    return _instance(using, order, rows[0])


def write_route(using: str, execution_id: UUID) -> None:
    """Say on the spine where the execution will live, before the plane's commit; a sweep removes unused routes."""
    spine = spine_alias()
    if using == spine:
        return
    route = {"execution_id": execution_id, "plane": name_of(using), "created_at": sql_now(connections[spine])}
    execute(spine, insert_row(connections[spine], ExecutionRoute, route, on_conflict="ON CONFLICT DO NOTHING"))


def _started_epoch(using: str, order: Order) -> Sql | int:
    """The epoch that the execution's row got in this same batch."""
    if not order.tenant:
        return 0
    if is_postgres(connections[using]):
        return Sql("(SELECT guard.epoch FROM guard)")
    own = value(connections[using], field_of(Execution, "id"), order.id)
    return build(f"(SELECT s.epoch FROM {TABLE} s WHERE s.id = {{id}})", id=own)


def _instance(using: str, order: Order, row: Sequence[Any]) -> Execution[Any]:
    """The row that was just inserted, without reading it again."""
    values = convert(connections[using], Execution, RETURNED, row)
    execution: Execution[Any] = Execution(**values, tags=dict(order.tags))
    execution._state.adding = False
    execution._state.db = using
    execution.is_new = True
    return execution


def _columns(using: str, order: Order, *, in_line: bool) -> dict[str, Any]:
    connection = connections[using]
    now = sql_now(connection)
    return {
        "id": order.id,
        "tenant": order.tenant,
        "workflow": order.workflow,
        "version": order.version,
        "source_digest": order.source_digest,
        "key": order.key,
        "run": 1,
        "chain_id": order.id,
        "current_key": order.current_key,
        "status": "pending",
        "queue": order.queue,
        "priority": order.priority,
        "tags": dict(order.tags),
        "correlation_id": order.correlation_id,
        "parent_id": order.parent_id,
        "parent_position": order.parent_position,
        "parent_item": order.parent_item,
        "parent_close": order.parent_close,
        "root_id": order.root_id or order.id,
        "revision": 1,
        "epoch": current_epoch(using, order.tenant),
        "worker": "",
        "recoveries": 0,
        "max_recoveries": order.max_recoveries,
        "takeovers": "[]",
        "run_after": order.run_after,
        "scheduled_for": order.scheduled_for,
        "wake_at": order.run_after,
        # Of one that waits for its singleton it begins with its admission.
        "deadline": None if in_line else _deadline(using, order),
        "timeout_seconds": order.timeout_seconds,
        "awaiting": "",
        "ending_as": "",
        "failed_positions": "",
        "blocked_by": "",
        "moving": False,
        "budget": order.budget,
        "singleton": order.singleton,
        "singleton_limit": order.singleton_limit,
        "in_line": in_line,
        "seed": secrets.token_hex(16),
        "encoded_input": order.encoded_input,
        "created_at": now,
    }


def current_epoch(using: str, tenant: str) -> Sql | int:
    """The tenant's current epoch, read in the accepting transaction."""
    if not tenant:
        return 0
    connection = connections[using]
    lock = " FOR SHARE" if is_postgres(connection) else ""
    return build(
        f"COALESCE((SELECT t.epoch FROM {TenantEpoch._meta.db_table} t WHERE t.tenant = {{tenant}}{lock}), 0)",
        tenant=value(connection, field_of(TenantEpoch, "tenant"), tenant),
    )


def _deadline(using: str, order: Order) -> datetime | Sql | None:
    if order.timeout_seconds is None:
        return None
    if order.run_after is not None:
        try:
            deadline = order.run_after + timedelta(seconds=order.timeout_seconds)
        except OverflowError:
            deadline = datetime.max.replace(tzinfo=UTC)
        return aware(deadline, name="run_after plus timeout")
    return sql_after(connections[using], order.timeout_seconds)


def _start_again(using: str, order: Order) -> Execution[Any]:
    """The insert found the key taken, or did not dare: look, then insert in a savepoint where nothing is seen."""
    refuse_leaving(using, order.tenant)
    existing = _current(using, order)
    if existing is None:
        try:
            with transaction.atomic(using=using):
                inserted = insert_execution(using, order, "")
                if inserted is not None:
                    return inserted
        except (IntegrityError, OperationalError) as error:
            raise _unseen(order) from error
        existing = _current(using, order)
        if existing is None:
            raise _unseen(order)
    return _meet(using, order, existing)


def refuse_leaving(using: str, tenant: str) -> None:
    """Raise ``PlaneUnavailable`` for a tenant that is leaving this plane."""
    if tenant and TenantEpoch.objects.using(using).filter(pk=tenant).exclude(moved_to="").exists():
        raise PlaneUnavailable(f"tenant {tenant!r} is being moved to another data plane; try again shortly")


def _unseen(order: Order) -> ExecutionConflict:
    return ExecutionConflict(
        f"key {order.key!r} of workflow {order.workflow!r} belongs to an execution that this transaction's"
        " snapshot cannot see; retry the whole transaction"
    )


def _current(using: str, order: Order) -> Execution[Any] | None:
    found: Execution[Any] | None = Execution._base_manager.using(using).filter(current_key=order.current_key).first()
    return found


def _meet(using: str, order: Order, existing: Execution[Any]) -> Execution[Any]:
    if order.on_conflict == "error":
        raise ExecutionConflict(
            f"key {order.key!r} of workflow {order.workflow!r} is taken by execution {existing.pk}"
            f" ({existing.status})"
        )
    if order.on_conflict == "restart" and existing.status in TERMINAL:
        return _restart(using, order, existing)
    first = existing
    if existing.chain_id != existing.pk:
        # Gone where retention has just removed the whole chain; a start that is repeated begins a new one.
        first = Execution._base_manager.using(using).filter(pk=existing.chain_id).first() or existing
    if not same_value(first.encoded_input, order.encoded_input):
        raise ExecutionConflict(
            f"key {order.key!r} of workflow {order.workflow!r} belongs to execution {existing.pk}, which was"
            " started with another input; use another key, or the same input"
        )
    return existing


def _restart(using: str, order: Order, existing: Execution[Any]) -> Execution[Any]:
    """A new chain takes the key over from one that has ended."""
    connection = connections[using]
    with transaction.atomic(using=using):
        freed = execute(
            using,
            build(
                f"UPDATE {TABLE} SET current_key = NULL WHERE id = {{id}} AND current_key = {{key}}"
                " AND status IN ('completed', 'failed', 'cancelled', 'timed_out', 'dead')",
                id=value(connection, field_of(Execution, "id"), existing.pk),
                key=value(connection, field_of(Execution, "current_key"), order.current_key),
            ),
        )
        inserted = insert_execution(using, order, "") if freed else None
        if inserted is not None:
            return inserted
    # Somebody else restarted it first: theirs is the current one.
    winner = _current(using, order)
    if winner is None:
        raise _unseen(order)
    return winner
