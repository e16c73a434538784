"""Isolation: what a transaction sees of what was committed while it waited for a lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, transaction

from django_durable.sql import Sql, execute, fetch, is_postgres


@contextmanager
def read_committed(using: str) -> Iterator[None]:
    """A transaction that sees what was committed while it waited for the lock, whatever the session's isolation.

    In REPEATABLE READ the snapshot is as old as the wait for the lock: a message whose sender held the row would
    not be seen, and the sender, which found the execution running, would not have woken it.
    """
    connection = connections[using]
    outermost = not connection.in_atomic_block
    with transaction.atomic(using=using):
        if outermost and is_postgres(connection) and _isolation_of(using) != "read committed":
            execute(using, Sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"))
        yield


def _isolation_of(using: str) -> str:
    """The isolation of this connection's transactions as the server has it: asked once a connection.

    ``SHOW`` takes no snapshot, so the level of the transaction can still be changed after it.
    """
    connection = connections[using]
    known: tuple[object, str] | None = getattr(connection, "_durable_isolation", None)
    if known is None or known[0] is not connection.connection:
        level = str(fetch(using, Sql("SHOW transaction_isolation"))[0][0])
        known = (connection.connection, level)
        connection._durable_isolation = known  # type: ignore[attr-defined]
    return known[1]


def may_see_an_old_snapshot(using: str) -> bool:
    """Whether the transaction that is open may not see what was committed before it got its lock."""
    if not is_postgres(connections[using]):
        return False
    return str(fetch(using, Sql("SHOW transaction_isolation"))[0][0]) != "read committed"
