"""Planes in trouble: away, or without some of their migrations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

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
