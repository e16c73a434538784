"""The outbox: intents that a plane has committed, on their way to the spine.

A row is inserted in the plane's transaction and deleted once its hint is on the spine. Publishing again is
harmless: a hint that exists is left alone, and one that was used up already is dropped when it is claimed, since
its revision no longer is the execution's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connections, transaction

from django_durable.clock import sql_now
from django_durable.dispatch.definitions import definition_hash, tenant_hash
from django_durable.dispatch.hints import Intent, delete_older, insert_stored_hint
from django_durable.dispatch.nudge import nudge_after_commit
from django_durable.ids import random_id
from django_durable.models import DispatchHint, Outbox
from django_durable.planes.selection import spine_alias
from django_durable.sql import Sql, execute, insert_row

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

BATCH = 200
"""Rows that one relay pass publishes, at most."""


def insert_intent(connection: BaseDatabaseWrapper, intent: Intent) -> Sql:
    """Insert the intent's row where the batch's guard held."""
    now = sql_now(connection)
    values: dict[str, Any] = {
        "execution_id": intent.execution_id,
        "kind": intent.kind,
        "position": intent.position,
        "item": intent.item,
        "revision": intent.revision,
        "epoch": intent.epoch,
        "queue": intent.queue,
        "priority": intent.priority,
        "definition": definition_hash(intent.workflow, intent.version),
        "lane": tenant_hash(intent.tenant),
        "opening": intent.opening,
        "state": intent.state,
        "avoid": intent.avoid,
        "due_at": intent.due_at or now,
        "created_at": now,
    }
    return insert_row(connection, Outbox, values, on_conflict="ON CONFLICT DO NOTHING")


def publish_intents(plane: str, plane_name: str, execution_id: UUID) -> int:
    """Publish every row of one execution; how many."""
    rows = Outbox.objects.using(plane).filter(execution_id=execution_id)
    return publish_rows(plane, plane_name, list(rows.order_by("id")))


def relay(plane: str, plane_name: str) -> int:
    """Publish what was left behind, oldest first; how many."""
    return publish_rows(plane, plane_name, list(Outbox.objects.using(plane).order_by("id")[:BATCH]))


def publish_rows(plane: str, plane_name: str, rows: Sequence[Outbox]) -> int:
    """Insert the rows' hints on the spine, then delete the rows: a kill in between publishes them again."""
    if not rows:
        return 0
    spine = spine_alias()
    connection = connections[spine]
    published: list[tuple[UUID, str]] = []
    with transaction.atomic(using=spine):
        for row in rows:
            hint_id = random_id()
            if row.kind == DispatchHint.Kind.TURN and row.revision > 1:
                execute(spine, delete_older(connection, row.execution_id, row.revision))
            inserted = execute(spine, insert_stored_hint(connection, row, plane_name, hint_id))
            # What is due later wakes nobody now.
            if inserted and row.state == DispatchHint.State.LIVE and row.due_at <= row.created_at:
                published.append((hint_id, row.queue))
    Outbox.objects.using(plane).filter(pk__in=[row.pk for row in rows]).delete()
    for hint_id, queue in published:
        nudge_after_commit(spine, hint_id, queue)
    return len(rows)
