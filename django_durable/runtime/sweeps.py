"""The named sweeps: what finds work that a crash, a lost row or missing code left behind.

Each takes one plane (its database alias) and is bounded per pass, ordered, safe in any number of copies, and
isolates a bad row. None of them runs user code.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from django_durable.authoring.registry import all_workflows, code_digest, find_workflow, served_hashes
from django_durable.clock import read_now
from django_durable.dispatch import outbox
from django_durable.dispatch.definitions import definition_hash
from django_durable.engine.locking import lock_execution
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.leave import dead_letter
from django_durable.engine.transitions.republish import republish
from django_durable.engine.transitions.unknown import block_unclaimable
from django_durable.errors import UnknownWorkflow
from django_durable.models import DeadLetter, DispatchHint, Execution, ExecutionRoute
from django_durable.models.execution import ACTIVE, RETRYABLE, TERMINAL
from django_durable.planes.registry import name_of
from django_durable.planes.selection import spine_alias
from django_durable.quiet import report
from django_durable.sql import execute

logger = logging.getLogger("django_durable")

BATCH = 200
"""Rows that one pass changes, at most."""

PAGE = 1_000
"""Ids that are compared between spine and plane at a time: they may be two databases."""

STRETCH = 10_000
"""Rows that one pass of a sweep through a whole table looks past, at most."""

UNUSED_ROUTE = timedelta(hours=1)
"""A route without an execution is removed after so long: its start may still be in an open transaction."""

_cursors: dict[str, UUID | None] = {}

Choice = Callable[[dict[UUID, UUID]], list[UUID]]
"""Of rows given as key and execution id, the keys that a sweep wants, in the same order."""


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
    unknown = due.exclude(definition__in=served_hashes())
    changed = 0
    for hint_id, execution_id in _found(plane, "unknown", unknown, _changeable(plane)):
        try:
            changed += _block_or_stamp(plane, hint_id, execution_id)
        except Exception as error:
            report(error, "execution %s could not be blocked", execution_id)
    return changed


def _changeable(plane: str) -> Choice:
    """Of these hints, those whose execution this sweep can change: a page of others must not hide them."""
    served = {workflow.name for workflow in all_workflows()}

    def choose(owners: dict[UUID, UUID]) -> list[UUID]:
        rows = Execution._base_manager.using(plane).filter(pk__in=list(owners.values()), status__in=ACTIVE)
        free = rows.filter(Q(status__in=SOURCES["block"], lease_token=None) | Q(workflow__in=served))
        fit = set(free.values_list("pk", flat=True))
        return [hint_id for hint_id, execution_id in owners.items() if execution_id in fit]

    return choose


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
    """Unleased hints whose execution is gone or has ended are deleted."""
    unleased = hints_of(plane).filter(token=None)
    doomed = [hint_id for hint_id, _execution in _found(plane, "dangling", unleased, _ownerless(plane))]
    return unleased.filter(pk__in=doomed).delete()[0] if doomed else 0


def _ownerless(plane: str) -> Choice:
    def choose(owners: dict[UUID, UUID]) -> list[UUID]:
        rows = Execution._base_manager.using(plane).filter(pk__in=list(owners.values()))
        alive = set(rows.exclude(status__in=TERMINAL).values_list("pk", flat=True))
        return [hint_id for hint_id, execution_id in owners.items() if execution_id not in alive]

    return choose


def drop_unused_routes(plane: str) -> int:
    """Routes of starts that were rolled back are deleted."""
    spine = spine_alias()
    if plane == spine:
        return 0
    routes = ExecutionRoute.objects.using(spine).filter(plane=name_of(plane))
    old = routes.filter(created_at__lt=read_now(spine) - UNUSED_ROUTE)

    def choose(owners: dict[UUID, UUID]) -> list[UUID]:
        used = set(Execution._base_manager.using(plane).filter(pk__in=list(owners)).values_list("pk", flat=True))
        return [execution_id for execution_id in owners if execution_id not in used]

    doomed = [execution_id for execution_id, _same in _found(plane, "routes", old, choose)]
    return old.filter(pk__in=doomed).delete()[0] if doomed else 0


def rebuild_hints(plane: str) -> int:
    """Live executions without a hint that need one get it: one stretch of the table in each status."""

    def choose(owners: dict[UUID, UUID]) -> list[UUID]:
        hinted = set(hints_of(plane).filter(execution_id__in=list(owners)).values_list("execution_id", flat=True))
        return [execution_id for execution_id in owners if execution_id not in hinted]

    rebuilt = 0
    for status in ACTIVE:
        rows = Execution._base_manager.using(plane).filter(status=status, moving=False)
        if status in ("waiting", "paused"):
            rows = rows.exclude(wake_at=None, deadline=None)
        found = _found(plane, f"rebuild {status}", rows, choose)
        rebuilt += sum(_rebuild(plane, execution_id) for execution_id, _same in found)
    return rebuilt


def rebuild_everything(plane: str) -> int:
    """Every stretch, from the first; for an emptied or restored spine."""
    cursors = [_cursor(plane, f"rebuild {status}") for status in ACTIVE]
    for cursor in cursors:
        _cursors.pop(cursor, None)
    total = rebuild_hints(plane)
    while any(_cursors.get(cursor) is not None for cursor in cursors):
        total += rebuild_hints(plane)
    return total


def _cursor(plane: str, name: str) -> str:
    return f"{plane}:{name}"


def _found(plane: str, name: str, rows: Any, choose: Choice) -> list[tuple[UUID, UUID]]:
    """The chosen among the next stretch of rows, in key order, with their execution; starts over after the last.

    Rows that are not chosen are looked past, so that however many of them hide none behind them.
    """
    cursor = _cursor(plane, name)
    owner = "pk" if rows.model in (Execution, ExecutionRoute) else "execution_id"
    chosen: list[tuple[UUID, UUID]] = []
    size = min(PAGE, STRETCH)
    for _page in range(STRETCH // size):
        after = _cursors.get(cursor)
        page = rows.filter(pk__gt=after) if after is not None else rows
        owners = dict(page.order_by("pk").values_list("pk", owner)[:size])
        fit = choose(owners)[: BATCH - len(chosen)] if owners else []
        chosen += [(key, owners[key]) for key in fit]
        if len(chosen) == BATCH:
            _cursors[cursor] = fit[-1]
            return chosen
        _cursors[cursor] = max(owners) if len(owners) == size else None
        if len(owners) < size:
            break
    return chosen


def _rebuild(plane: str, execution_id: UUID) -> int:
    try:
        return int(republish(plane, execution_id))
    except Exception as error:
        report(error, "the hint of execution %s could not be rebuilt", execution_id)
        return 0


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
