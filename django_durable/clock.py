"""The one clock that decides ownership and due-ness: the database's.

``clock_timestamp()`` on PostgreSQL, never ``now()``, which stands still inside a transaction. SQLite's
``strftime`` has milliseconds; it is padded to six digits so that stored times compare as text. The testing
kit alone moves the clock, by ``shift``; the offset is part of the SQL text, so it holds for every statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connections

from django_durable.sql import Sql

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_offset = timedelta(0)


def sql_now(connection: BaseDatabaseWrapper) -> Sql:
    """SQL for the current time of this connection's database."""
    return sql_after(connection, 0.0)


def sql_until_now(connection: BaseDatabaseWrapper) -> Sql:
    """SQL for the current time as the bound of a search, read once a statement.

    ``clock_timestamp()`` itself may differ from row to row, so that no index can be searched by it: a poll would
    read every row that lies in the future.
    """
    now = sql_now(connection)
    return Sql(f"(SELECT {now.text})", now.params)


def sql_after(connection: BaseDatabaseWrapper, seconds: float | None) -> Sql:
    """SQL for the current time plus ``seconds``; NULL for ``None``."""
    if seconds is None:
        return Sql("NULL", ())
    total = seconds + _offset.total_seconds()
    if connection.vendor == "postgresql":
        if total == 0:
            return Sql("clock_timestamp()", ())
        return Sql("(clock_timestamp() + %s * interval '1 second')", (total,))
    if connection.vendor == "sqlite":
        return Sql("(strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s) || '000')", (f"{total:+.3f} seconds",))
    raise NotImplementedError(f"no clock is known for the database vendor {connection.vendor!r}")


def read_now(using: str) -> datetime:
    """The database's current time, aware, UTC. One statement."""
    connection = connections[using]
    now = sql_now(connection)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now.text}", list(now.params))
        raw = cursor.fetchone()[0]
    value = datetime.fromisoformat(raw) if isinstance(raw, str) else raw
    assert isinstance(value, datetime)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


@contextmanager
def shifted() -> Iterator[None]:
    """Restore the clock's offset at the end; used around one test by the testing kit."""
    global _offset
    before = _offset
    try:
        yield
    finally:
        _offset = before


def shift(duration: timedelta) -> None:
    """Move the clock forward for every later statement of this process. Testing kit only."""
    global _offset
    _offset += duration
