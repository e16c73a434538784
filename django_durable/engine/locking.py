"""Lock one execution's row and read it: the beginning of every transition that decides in Python."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from django_durable.clock import sql_now
from django_durable.engine.claimed import COLUMNS, as_utc
from django_durable.errors import ExecutionNotFound, PlaneUnavailable
from django_durable.models import Execution
from django_durable.sql import build, columns, convert, fetch, field_of, is_postgres, value

TABLE = Execution._meta.db_table

LOCKED = (
    *COLUMNS,
    "current_key",
    "successor_id",
    "lease_token",
    "worker",
    "claimed_at",
    "started_at",
    "singleton_limit",
    "in_line",
    "wake_at",
    "awaiting",
    "timeout_seconds",
    "max_recoveries",
    "takeovers",
    "cancel_requested_at",
    "ending_as",
    "failed_positions",
    "blocked_by",
    "encoded_error",
    "moving",
)


class ExecutionBusy(Exception):
    """Somebody else holds the row's lock."""


def lock_execution(
    using: str, execution_id: UUID, *, shared: bool = False, wait: bool = True
) -> tuple[datetime, dict[str, Any]]:
    """Lock the row, exclusively or against exclusive holders only; the database's clock and the row.

    ``wait=False`` raises ``ExecutionBusy`` where another transaction holds it.

    SQLite has no row locks: an update that changes nothing takes the write lock, which everybody needs.
    Raises ``ExecutionNotFound``.
    """
    connection = connections[using]
    wanted = value(connection, field_of(Execution, "id"), execution_id)
    now = sql_now(connection)
    if is_postgres(connection):
        lock = ("FOR SHARE" if shared else "FOR UPDATE") + ("" if wait else " SKIP LOCKED")
        statement = build(
            f"SELECT {{now}}, {columns(Execution, LOCKED)} FROM {TABLE} WHERE id = {{id}} {lock}",
            now=now,
            id=wanted,
        )
    else:
        statement = build(
            f"UPDATE {TABLE} SET status = status WHERE id = {{id}} RETURNING {{now}}, {columns(Execution, LOCKED)}",
            id=wanted,
            now=now,
        )
    rows = fetch(using, statement)
    if not rows:
        if not wait and Execution._base_manager.using(using).filter(pk=execution_id).exists():
            raise ExecutionBusy
        raise ExecutionNotFound(f"there is no execution {execution_id}")
    row = convert(connection, Execution, LOCKED, rows[0][1:])
    if row["moving"]:
        raise PlaneUnavailable(f"execution {execution_id} is being moved to another data plane; try again shortly")
    return read_time(rows[0][0]), row


def read_time(raw: Any) -> datetime:
    """A time as the database's clock returns it: a datetime, or SQLite's text."""
    return as_utc(datetime.fromisoformat(raw) if isinstance(raw, str) else raw)
