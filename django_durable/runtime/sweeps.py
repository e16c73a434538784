"""The named sweeps: what finds work that a crash, a lost row or missing code left behind.

Each is bounded per pass, ordered, safe in any number of copies, and isolates a bad row.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models import Exists, OuterRef

from django_durable.authoring.registry import all_workflows, code_digest, find_workflow, served_hashes
from django_durable.clock import read_now, sql_after
from django_durable.conf import config
from django_durable.dispatch.definitions import definition_hash
from django_durable.dispatch.hints import Intent, insert_hint
from django_durable.engine.contention import repeated
from django_durable.engine.locking import lock_execution
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.leave import dead_letter
from django_durable.engine.transitions.unknown import block_unclaimable
from django_durable.errors import ExecutionNotFound, UnknownWorkflow
from django_durable.models import DeadLetter, DispatchHint, Execution
from django_durable.models.execution import ACTIVE, RETRYABLE, TERMINAL
from django_durable.sql import Sql, execute

logger = logging.getLogger("django_durable")

BATCH = 200
"""Rows that one pass changes, at most."""
STRETCH = 10_000
"""Rows that one pass of a sweep through a whole table looks past, at most, in each status."""

_cursors: dict[str, UUID | None] = {}


def block_unknown(using: str) -> int:
    """Due work whose definition this process does not know becomes ``blocked``: visible, not failed.

    A worker that knows it claims it from there at its next look. A hint whose hash is only outdated (the secret
    key was rotated away) is stamped anew.
    """
    due = DispatchHint.objects.using(using).filter(
        state=DispatchHint.State.LIVE, token=None, due_at__lte=read_now(using), kind=DispatchHint.Kind.TURN
    )
    # What the sweep could not change is left out by the query: a page full of it would hide all the rest.
    rows = Execution._base_manager.using(using).filter(pk=OuterRef("execution_id"))
    blockable = rows.filter(status__in=SOURCES["block"], lease_token=None)
    outdated = rows.filter(status__in=ACTIVE, workflow__in={workflow.name for workflow in all_workflows()})
    unknown = due.exclude(definition__in=served_hashes()).filter(Exists(blockable) | Exists(outdated))
    found = unknown.order_by("due_at").values_list("id", "execution_id")[:BATCH]
    changed = 0
    for hint_id, execution_id in list(found):
        try:
            changed += _block_or_stamp(using, hint_id, execution_id)
        except Exception:
            logger.exception("execution %s could not be blocked", execution_id)
    return changed


def _block_or_stamp(using: str, hint_id: UUID, execution_id: UUID) -> int:
    row = Execution._base_manager.using(using).filter(pk=execution_id).values("workflow", "version").first()
    if row is None:
        return 0
    try:
        find_workflow(row["workflow"], row["version"])
    except UnknownWorkflow as error:
        return int(block_unclaimable(using, execution_id, error, code_digest()))
    fresh = definition_hash(row["workflow"], row["version"])
    return DispatchHint.objects.using(using).filter(pk=hint_id, token=None).update(definition=fresh)


def drop_dangling_hints(using: str) -> int:
    """Unleased hints whose execution is gone or has ended are deleted."""
    alive = Execution._base_manager.using(using).filter(pk=OuterRef("execution_id")).exclude(status__in=TERMINAL)
    hints = DispatchHint.objects.using(using).filter(token=None)
    doomed = _page(using, "dangling", hints, hints.exclude(Exists(alive)))
    return hints.filter(pk__in=doomed).exclude(Exists(alive)).delete()[0]


def rebuild_hints(using: str) -> int:
    """Live executions without a hint that need one get it: one stretch of the table in each status."""
    hint = DispatchHint.objects.using(using).filter(execution_id=OuterRef("pk"))
    rebuilt = 0
    for status in ACTIVE:
        rows = Execution._base_manager.using(using).filter(status=status)
        lost = rows.exclude(Exists(hint))
        if status in ("waiting", "paused"):
            lost = lost.exclude(wake_at=None, deadline=None)
        rebuilt += sum(_rebuild(using, execution_id) for execution_id in _page(using, f"rebuild {status}", rows, lost))
    return rebuilt


def rebuild_everything(using: str) -> int:
    """Every stretch, from the first; for an emptied or restored spine."""
    cursors = [_cursor(using, f"rebuild {status}") for status in ACTIVE]
    for cursor in cursors:
        _cursors.pop(cursor, None)
    total = rebuild_hints(using)
    while any(_cursors.get(cursor) is not None for cursor in cursors):
        total += rebuild_hints(using)
    return total


def _cursor(using: str, name: str) -> str:
    return f"{using}:{name}"


def _page(using: str, name: str, rows: Any, wanted: Any) -> list[UUID]:
    """The wanted ones among the next stretch of ``rows``, in key order; starts over after the last.

    Two statements whatever there is: one finds where the stretch ends, one what is wanted in it.
    """
    cursor = _cursor(using, name)
    after = _cursors.get(cursor)
    if after is not None:
        rows, wanted = rows.filter(pk__gt=after), wanted.filter(pk__gt=after)
    end = rows.order_by("pk").values_list("pk", flat=True)[STRETCH - 1 : STRETCH].first()
    if end is not None:
        wanted = wanted.filter(pk__lte=end)
    ids = list(wanted.order_by("pk").values_list("pk", flat=True)[:BATCH])
    _cursors[cursor] = ids[-1] if len(ids) == BATCH else end
    return ids


def _rebuild(using: str, execution_id: UUID) -> int:
    try:
        return repeated(using, lambda: _rebuild_locked(using, execution_id))
    except ExecutionNotFound:
        return 0
    except Exception:
        logger.exception("the hint of execution %s could not be rebuilt", execution_id)
        return 0


def _rebuild_locked(using: str, execution_id: UUID) -> int:
    with transaction.atomic(using=using):
        _now, row = lock_execution(using, execution_id)
        if DispatchHint.objects.using(using).filter(execution_id=execution_id).exists():
            return 0
        for intent in _intent_of(using, row):
            return execute(using, insert_hint(connections[using], intent))
    return 0


def _intent_of(using: str, row: dict[str, Any]) -> Iterator[Intent]:
    """The intent that this state stands for; none where it awaits a message or an operator."""
    status: str = row["status"]
    due_at: datetime | Sql | None = None
    more: dict[str, Any] = {}
    if status in TERMINAL:
        return
    if status in ("waiting", "paused"):
        times = [moment for moment in (row["wake_at"], row["deadline"]) if moment is not None]
        if not times:
            return
        due_at = min(times)
    elif status == "blocked":
        more = {"state": DispatchHint.State.BLOCKED, "avoid": row["blocked_by"]}
    elif row["lease_token"] is not None:
        # Its lease went with the hint; whoever still runs it finds that out at its next renewal.
        due_at = sql_after(connections[using], config().lease_seconds)
    else:
        due_at = row["wake_at"]
    yield Intent(
        execution_id=row["id"],
        workflow=row["workflow"],
        version=row["version"],
        revision=row["revision"],
        epoch=row["epoch"],
        queue=row["queue"],
        priority=row["priority"],
        due_at=due_at,
        **more,
    )


def write_missing_letters(using: str) -> int:
    """A backstop: what ended in failure without a dead letter gets one."""
    letters = DeadLetter.objects.using(using).filter(execution_id=OuterRef("pk"))
    missing = Execution._base_manager.using(using).filter(~Exists(letters), status__in=RETRYABLE).order_by("pk")
    return sum(_write_letter(using, execution_id) for execution_id in missing.values_list("pk", flat=True)[:BATCH])


def _write_letter(using: str, execution_id: UUID) -> int:
    with transaction.atomic(using=using):
        _now, row = lock_execution(using, execution_id)
        if row["status"] not in RETRYABLE:
            return 0
        if DeadLetter.objects.using(using).filter(execution_id=execution_id).exists():
            return 0
        return execute(using, dead_letter(using, row, status=row["status"], error=row["encoded_error"]))
