"""The named sweeps: what finds work that a crash, a lost row or missing code left behind.

Each takes one plane (its database alias) and is bounded per pass, ordered, safe in any number of copies, and
isolates a bad row. None of them runs user code.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models import Exists, OuterRef, QuerySet

from django_durable.authoring.registry import code_digest, find_workflow, served_hashes
from django_durable.clock import read_now, sql_after
from django_durable.conf import config
from django_durable.dispatch import outbox
from django_durable.dispatch.definitions import definition_hash
from django_durable.dispatch.hints import Intent
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.locking import lock_execution
from django_durable.engine.transitions.leave import dead_letter
from django_durable.engine.transitions.unknown import block_unclaimable
from django_durable.errors import ExecutionNotFound, UnknownWorkflow
from django_durable.models import DeadLetter, DispatchHint, Execution, ExecutionRoute
from django_durable.models.execution import ACTIVE, RETRYABLE, TERMINAL
from django_durable.planes.registry import name_of
from django_durable.planes.selection import spine_alias
from django_durable.sql import Sql, execute

logger = logging.getLogger("django_durable")

BATCH = 200
"""Rows that one pass looks at, at most."""

UNUSED_ROUTE = timedelta(hours=1)
"""A route without an execution is removed after so long: its start may still be in an open transaction."""

_cursors: dict[str, UUID | None] = {}


def hints_of(plane: str) -> QuerySet[DispatchHint]:
    """The spine's hints for the executions of one plane."""
    return DispatchHint.objects.using(spine_alias()).filter(plane=name_of(plane))


def relay_outbox(plane: str) -> int:
    """Intents whose publication was cut short are published, oldest first."""
    if plane == spine_alias():
        return 0
    return outbox.relay(plane, name_of(plane))


def block_unknown(plane: str) -> int:
    """Due work whose definition this process does not know becomes ``blocked``: visible, not failed.

    A worker that knows it claims it from there at its next look. A hint whose hash is only outdated (the secret
    key was rotated away) is stamped anew.
    """
    due = hints_of(plane).filter(
        state=DispatchHint.State.LIVE,
        token=None,
        due_at__lte=read_now(spine_alias()),
        kind=DispatchHint.Kind.TURN,
    )
    found = due.exclude(definition__in=served_hashes()).order_by("due_at").values_list("id", "execution_id")[:BATCH]
    changed = 0
    for hint_id, execution_id in list(found):
        try:
            changed += _block_or_stamp(plane, hint_id, execution_id)
        except Exception:
            logger.exception("execution %s could not be blocked", execution_id)
    return changed


def _block_or_stamp(plane: str, hint_id: UUID, execution_id: UUID) -> int:
    row = Execution._base_manager.using(plane).filter(pk=execution_id).values("workflow", "version").first()
    if row is None:
        return 0
    try:
        find_workflow(row["workflow"], row["version"])
    except UnknownWorkflow as error:
        return int(block_unclaimable(plane, execution_id, error, code_digest()))
    fresh = definition_hash(row["workflow"], row["version"])
    return hints_of(plane).filter(pk=hint_id, token=None).update(definition=fresh)


def drop_dangling_hints(plane: str) -> int:
    """Unleased hints whose execution is gone or has ended are deleted, a page at a time."""
    page = _page(plane, "dangling", hints_of(plane).filter(token=None))
    owners = dict(hints_of(plane).filter(pk__in=page).values_list("pk", "execution_id"))
    alive = set(
        Execution._base_manager.using(plane)
        .filter(pk__in=list(owners.values()))
        .exclude(status__in=TERMINAL)
        .values_list("pk", flat=True)
    )
    doomed = [hint_id for hint_id, execution_id in owners.items() if execution_id not in alive]
    return hints_of(plane).filter(pk__in=doomed, token=None).delete()[0] if doomed else 0


def drop_unused_routes(plane: str) -> int:
    """Routes of starts that were rolled back are deleted, a page at a time."""
    spine = spine_alias()
    if plane == spine:
        return 0
    routes = ExecutionRoute.objects.using(spine).filter(plane=name_of(plane))
    old = routes.filter(created_at__lt=read_now(spine) - UNUSED_ROUTE)
    page = _page(plane, "routes", old)
    used = set(Execution._base_manager.using(plane).filter(pk__in=page).values_list("pk", flat=True))
    doomed = [execution_id for execution_id in page if execution_id not in used]
    return old.filter(pk__in=doomed).delete()[0] if doomed else 0


def rebuild_hints(plane: str) -> int:
    """One page of live executions: those without a hint that need one get it."""
    page = _page(plane, "rebuild", Execution._base_manager.using(plane).filter(status__in=ACTIVE))
    hinted = set(hints_of(plane).filter(execution_id__in=page).values_list("execution_id", flat=True))
    return sum(_rebuild(plane, execution_id) for execution_id in page if execution_id not in hinted)


def rebuild_everything(plane: str) -> int:
    """Every page, from the first; for an emptied or restored spine."""
    _cursors.pop(f"{plane}:rebuild", None)
    total = rebuild_hints(plane)
    while _cursors.get(f"{plane}:rebuild") is not None:
        total += rebuild_hints(plane)
    return total


def _page(plane: str, name: str, rows: Any) -> list[UUID]:
    """The next page of ids in key order; starts over after the last."""
    key = f"{plane}:{name}"
    after = _cursors.get(key)
    page = rows.filter(pk__gt=after) if after is not None else rows
    ids = list(page.order_by("pk").values_list("pk", flat=True)[:BATCH])
    _cursors[key] = ids[-1] if len(ids) == BATCH else None
    return ids


def _rebuild(plane: str, execution_id: UUID) -> int:
    try:
        return repeated(plane, lambda: _rebuild_locked(plane, execution_id))
    except ExecutionNotFound:
        return 0
    except Exception:
        logger.exception("the hint of execution %s could not be rebuilt", execution_id)
        return 0


def _rebuild_locked(plane: str, execution_id: UUID) -> int:
    with transaction.atomic(using=plane):
        _now, row = lock_execution(plane, execution_id)
        if hints_of(plane).filter(execution_id=execution_id).exists():
            return 0  # it was published, or given back, since the page was read
        for intent in _intent_of(plane, row):
            SpineWork(plane).publish(intent).run()
            return 1
    return 0


def _intent_of(plane: str, row: dict[str, Any]) -> Iterator[Intent]:
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
        due_at = sql_after(connections[plane], config().lease_seconds)
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


def write_missing_letters(plane: str) -> int:
    """A backstop: what ended in failure without a dead letter gets one."""
    letters = DeadLetter.objects.using(plane).filter(execution_id=OuterRef("pk"))
    missing = Execution._base_manager.using(plane).filter(~Exists(letters), status__in=RETRYABLE).order_by("pk")
    return sum(_write_letter(plane, execution_id) for execution_id in missing.values_list("pk", flat=True)[:BATCH])


def _write_letter(plane: str, execution_id: UUID) -> int:
    with transaction.atomic(using=plane):
        _now, row = lock_execution(plane, execution_id)
        if row["status"] not in RETRYABLE:
            return 0
        if DeadLetter.objects.using(plane).filter(execution_id=execution_id).exists():
            return 0
        return execute(plane, dead_letter(plane, row, status=row["status"], error=row["encoded_error"]))
