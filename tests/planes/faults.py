"""Planes in trouble: away, without some of their migrations, locked, or slower than they may be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from django.db.utils import load_backend

from django_durable.planes.behind import forget_looks


@contextmanager
def down(alias: str) -> Iterator[None]:
    """Make a database unreachable for new connections, and end the one that is open."""
    connection = connections[alias]
    connection.close()
    key = "HOST" if connection.vendor == "postgresql" else "NAME"
    before = connection.settings_dict[key]
    connection.settings_dict[key] = "/nowhere/at/all"
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict[key] = before


@contextmanager
def lagging(alias: str, name: str = "0001_initial") -> Iterator[None]:
    """Let a database say that one of our migrations has not run there."""
    recorder = MigrationRecorder(connections[alias])
    recorder.record_unapplied("django_durable", name)
    forget_looks()
    try:
        yield
    finally:
        if ("django_durable", name) not in recorder.applied_migrations():
            recorder.record_applied("django_durable", name)
        forget_looks()


@contextmanager
def lacking_a_table(alias: str, name: str = "django_durable_execution") -> Iterator[None]:
    """Take a table away, and the migration with it."""
    with lagging(alias), connections[alias].cursor() as cursor:
        cursor.execute(f"ALTER TABLE {name} RENAME TO away_for_now")
        try:
            yield
        finally:
            cursor.execute(f"ALTER TABLE away_for_now RENAME TO {name}")


@contextmanager
def locked(alias: str, name: str = "django_durable_execution") -> Iterator[None]:
    """Hold a lock in another session that readers wait for, no longer than their patience lasts."""
    connection = connections[alias]
    connection.close()
    postgres, options = connection.vendor == "postgresql", connection.settings_dict["OPTIONS"]
    other = load_backend(connection.settings_dict["ENGINE"]).DatabaseWrapper(connection.settings_dict, alias)
    with other.cursor() as theirs:
        theirs.execute("BEGIN" if postgres else "PRAGMA locking_mode = EXCLUSIVE")
        theirs.execute(f"LOCK TABLE {name}" if postgres else "BEGIN EXCLUSIVE")
        patience = {"options": "-c statement_timeout=100"} if postgres else {"timeout": 0.05}
        connection.settings_dict["OPTIONS"] = {**options, **patience}
        try:
            yield
        finally:
            connection.close()
            connection.settings_dict["OPTIONS"] = options
            theirs.execute("ROLLBACK")
            other.close()
