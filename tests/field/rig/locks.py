"""Who waits for whom, as PostgreSQL tells it."""

from __future__ import annotations

from django.db import connection


def backend_of_this_thread() -> int:
    """The server process of this thread's connection."""
    connection.ensure_connection()
    return int(connection.connection.info.backend_pid)


def stands_at_a_lock(backend: int) -> bool:
    """Whether this server process waits for a lock of another transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted", [backend])
        return bool(cursor.fetchone()[0])
