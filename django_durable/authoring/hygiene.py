"""After a body: no transaction left open, no setting left changed, no broken connection kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone, translation

logger = logging.getLogger("django_durable")


@contextmanager
def tidied(what: str) -> Iterator[None]:
    """Run a body; afterwards roll back what it left open and restore what it changed for the thread.

    A transaction that the body leaves open is rolled back and reported; the step's own result stands.
    """
    before = {c.alias: _depth(c) for c in connections.all(initialized_only=True)}
    zone, language = timezone.get_current_timezone(), translation.get_language()
    try:
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            _tidy(connection, before.get(connection.alias, (0, True)), what)
            if connection.errors_occurred and not connection.in_atomic_block:
                # A dead one would cost the next attempt as well, and the one after it. Not within a transactional
                # step: Django would take its open transaction for a reason to close a connection that works.
                connection.close_if_unusable_or_obsolete()
        if timezone.get_current_timezone() is not zone:
            timezone.activate(zone)
        if translation.get_language() != language:
            translation.activate(language) if language else translation.deactivate_all()


def _depth(connection: BaseDatabaseWrapper) -> tuple[int, bool]:
    return len(connection.atomic_blocks), connection.autocommit if connection.connection else True


def _tidy(connection: BaseDatabaseWrapper, before: tuple[int, bool], what: str) -> None:
    depth, autocommit = before
    left_open = len(connection.atomic_blocks) > depth
    switched = bool(connection.connection) and connection.autocommit != autocommit
    if not left_open and not (switched and depth == 0):
        return
    logger.warning("%s left a transaction open on %r; it was rolled back", what, connection.alias)
    if depth:
        _unwind(connection, depth)
        return
    connection.atomic_blocks.clear()
    connection.savepoint_ids.clear()
    connection.run_on_commit.clear()
    connection.in_atomic_block = False
    connection.needs_rollback = False
    connection.close()


def _unwind(connection: BaseDatabaseWrapper, depth: int) -> None:
    """Inside an outer block (a test's transaction): leave the body's inner blocks by their savepoints."""
    while len(connection.atomic_blocks) > depth:
        block = connection.atomic_blocks[-1]
        block.__exit__(RuntimeError, RuntimeError("left open by a step body"), None)
