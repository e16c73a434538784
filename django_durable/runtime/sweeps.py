"""The named sweeps: what finds work that a crash, a lost row or missing code left behind.

Each takes one plane (its database alias) and is bounded per pass, ordered, safe in any number of copies, and
isolates a bad row. None of them runs user code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from django_durable.authoring.registry import all_workflows, code_digest, find_workflow, served_hashes
from django_durable.clock import read_now
from django_durable.database_errors import is_disconnect
from django_durable.dispatch import outbox
from django_durable.dispatch.definitions import definition_hash
from django_durable.dispatch.hints import hinted
from django_durable.engine.contention import repeated
from django_durable.engine.locking import lock_execution
from django_durable.engine.standing import dispatched
from django_durable.engine.transitions import SOURCES, TAKES_RESULTS
from django_durable.engine.transitions.leave import dead_letter
from django_durable.engine.transitions.overlooked import is_overlooked, wake_overlooked
from django_durable.engine.transitions.republish import republish, republish_steps
from django_durable.engine.transitions.unknown import block_unclaimable
from django_durable.engine.transitions.verbs import insert_action
from django_durable.errors import UnknownWorkflow
from django_durable.models import DeadLetter, DispatchHint, Execution, ExecutionRoute, OperatorAction, OperatorNote
from django_durable.models.execution import ACTIVE, RETRYABLE, TERMINAL
from django_durable.planes.registry import name_of
from django_durable.planes.selection import spine_alias
from django_durable.quiet import report
from django_durable.runtime.queues import due_ranges
from django_durable.sql import execute

BATCH = 200
"""Rows that one pass changes, at most."""

PAGE = 250
"""Ids that are compared between spine and plane at a time: they may be two databases. Few enough to be looked up one
by one in an index, whatever a database believes about its tables."""

DUE_PAGE = 1_000
"""Due hints that are read at a time."""

STRETCH = 10_000
"""Rows that one pass of a sweep through a whole table looks past, at most."""

UNUSED_ROUTE = timedelta(hours=1)
"""A route without an execution is removed after so long: its start may still be in an open transaction."""

_cursors: dict[str, Any] = {}

Page = Callable[[Any, int], list[tuple[Any, UUID | None]]]
"""So many rows after a position, each with its own position and its key; ``None`` for a row to be looked past."""

Choice = Callable[[list[UUID]], list[tuple[UUID, UUID]]]
"""Of these keys, those that a sweep wants, in the same order, each with its execution's id."""


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
    changed = 0
    for queue, level in due_ranges(spine_alias()):
        for hint_id, execution_id in _found(
            plane, f"unknown {queue} {level}", _unknown_due(queue, level), _changeable(plane), size=DUE_PAGE
        ):
            try:
                changed += _block_or_stamp(plane, hint_id, execution_id)
            except Exception as error:
                report(error, "execution %s could not be blocked", execution_id)
        if changed >= BATCH:
            break
    return changed


def _unknown_due(queue: str, level: int) -> Page:
    """Due hints of one queue and level, the oldest first: one range of the index, without any that sleeps."""
    spine = spine_alias()
    due = DispatchHint.objects.using(spine).filter(
        state=DispatchHint.State.LIVE, queue=queue, priority=level, due_at__lte=read_now(spine)
    )
    served = frozenset(served_hashes())

    def page(after: Any, size: int) -> list[tuple[Any, UUID | None]]:
        rows = due
        if after is not None:
            rows = due.filter(due_at__gte=after[0]).exclude(due_at=after[0], pk__lte=after[1])
        found = rows.order_by("due_at", "pk").values_list("due_at", "pk", "definition")[:size]
        # A leased hint that is due has lapsed: its worker is gone, and nobody here can take it over.
        return [((at, key), None if name in served else key) for at, key, name in found]

    return page


def _changeable(plane: str) -> Choice:
    """Of these hints, those whose execution this sweep can change: a page of others must not hide them."""
    served = {workflow.name for workflow in all_workflows()}

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        owners = _owners(hints_of(plane).filter(kind=DispatchHint.Kind.TURN), keys)
        rows = Execution._base_manager.using(plane).filter(pk__in=list(owners.values()), status__in=ACTIVE)
        overdue = Q(deadline__lte=read_now(plane))
        free = rows.filter(Q(status__in=SOURCES["block"]) | overdue | Q(workflow__in=served))
        fit = set(free.values_list("pk", flat=True))
        return [(key, owners[key]) for key in keys if owners.get(key) in fit]

    return choose


def _owners(hints: QuerySet[DispatchHint], keys: list[UUID]) -> dict[UUID, UUID]:
    """The execution of each of these hints that is among the rows."""
    return dict(hints.filter(pk__in=keys).values_list("pk", "execution_id"))


def _block_or_stamp(plane: str, hint_id: UUID, execution_id: UUID) -> int:
    row = Execution._base_manager.using(plane).filter(pk=execution_id).values("workflow", "version").first()
    if row is None:
        return 0
    try:
        find_workflow(row["workflow"], row["version"])
    except UnknownWorkflow as error:
        return int(block_unclaimable(plane, hint_id, execution_id, error, code_digest()))
    fresh = definition_hash(row["workflow"], row["version"])
    return hints_of(plane).filter(pk=hint_id, token=None).update(definition=fresh)


def drop_dangling_hints(plane: str) -> int:
    """Unleased hints whose execution is gone or has ended are deleted."""
    unleased = hints_of(plane).filter(token=None)

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        owners = _owners(unleased, keys)
        rows = Execution._base_manager.using(plane).filter(pk__in=list(owners.values()))
        alive = set(rows.exclude(status__in=TERMINAL).values_list("pk", flat=True))
        return [(key, owners[key]) for key in keys if key in owners and owners[key] not in alive]

    page = _by_key(DispatchHint.objects.using(spine_alias()))
    doomed = [hint_id for hint_id, _execution in _found(plane, "dangling", page, choose)]
    return unleased.filter(pk__in=doomed).delete()[0] if doomed else 0


def drop_unused_routes(plane: str) -> int:
    """Routes of starts that were rolled back are deleted."""
    spine = spine_alias()
    if plane == spine:
        return 0
    routes = ExecutionRoute.objects.using(spine).filter(plane=name_of(plane))
    old = routes.filter(created_at__lt=read_now(spine) - UNUSED_ROUTE)

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        candidates = set(old.filter(pk__in=keys).values_list("pk", flat=True))
        used = set(Execution._base_manager.using(plane).filter(pk__in=candidates).values_list("pk", flat=True))
        return [(key, key) for key in keys if key in candidates and key not in used]

    page = _by_key(ExecutionRoute.objects.using(spine))
    doomed = [execution_id for execution_id, _same in _found(plane, "routes", page, choose)]
    return old.filter(pk__in=doomed).delete()[0] if doomed else 0


def copy_missing_actions(plane: str) -> int:
    """Operators' verbs that the spine has not heard of are told it: a plane's note comes before the spine's copy."""
    spine = spine_alias()
    if plane == spine:
        return 0

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        known = set(OperatorAction.objects.using(spine).filter(pk__in=keys).values_list("pk", flat=True))
        return [(key, key) for key in keys if key not in known]

    notes = OperatorNote.objects.using(plane)
    missing = [note_id for note_id, _same in _found(plane, "actions", _by_key(notes), choose)]
    return sum(execute(spine, insert_action(note)) for note in notes.filter(pk__in=missing).order_by("pk"))


def rebuild_hints(plane: str) -> int:
    """Live executions without the hint of their revision that need one get it: one stretch of each status.

    A hint of an earlier revision, which a restored spine may have, would be dropped, and not before it is due.
    """
    rows = Execution._base_manager.using(plane)

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        known = hinted(spine_alias(), keys)
        waits = Q(status__in=("waiting", "paused"), wake_at=None, deadline=None)
        needy = dict(rows.filter(~waits, pk__in=keys, moving=False).values_list("pk", "revision"))
        return [(key, key) for key in keys if key in needy and known.get(key, 0) < needy[key]]

    rebuilt = 0
    for status in ACTIVE:
        found = _found(plane, f"rebuild {status}", _by_key(rows.filter(status=status)), choose)
        rebuilt += _each(found, lambda key: republish(plane, key), "the hint of execution %s could not be rebuilt")
    return rebuilt


def rebuild_steps(plane: str) -> int:
    """Steps that run elsewhere and have lost their hint get it again."""
    rows = Execution._base_manager.using(plane).filter(moving=False)

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        names = ("execution_id", "position", "item", "attempt")
        begun = list(dispatched(plane, keys).values_list(*names))
        if not begun:
            return []
        hints = DispatchHint.objects.using(spine_alias()).filter(execution_id__in={row[0] for row in begun})
        known = set(
            hints.exclude(kind=DispatchHint.Kind.TURN).values_list("execution_id", "position", "item", "revision")
        )
        lost = {row[0] for row in begun if (*row[:3], row[3] + 1) not in known}
        return [(key, key) for key in keys if key in lost]

    rebuilt = 0
    for status in TAKES_RESULTS:
        found = _found(plane, f"steps {status}", _by_key(rows.filter(status=status)), choose)
        rebuilt += _each(
            found, lambda key: republish_steps(plane, key), "the hints of steps of execution %s could not be rebuilt"
        )
    return rebuilt


def wake_parents(plane: str) -> int:
    """Runs that wait for something elsewhere that has ended, or for a child that is gone, go on."""
    rows = Execution._base_manager.using(plane).filter(status="waiting", moving=False)

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        waiting = rows.filter(pk__in=keys, awaiting__contains="at:").values("id", "awaiting")
        overlooked = {row["id"] for row in waiting if _looks_overlooked(plane, row)}
        return [(key, key) for key in keys if key in overlooked]

    found = _found(plane, "parents", _by_key(rows), choose)
    return _each(found, lambda key: wake_overlooked(plane, key), "execution %s could not be woken")


def _looks_overlooked(plane: str, row: Mapping[str, Any]) -> bool:
    try:
        return is_overlooked(plane, row)
    except ValueError as error:  # its list was written past the engine
        report(error, "it cannot be read what execution %s waits for", row["id"])
        return False


def rebuild_everything(plane: str) -> int:
    """Every stretch, from the first; for an emptied or restored spine."""
    cursors = [_cursor(plane, f"{name} {status}") for name in ("rebuild", "steps") for status in ACTIVE]
    for cursor in cursors:
        _cursors.pop(cursor, None)
    total = rebuild_hints(plane) + rebuild_steps(plane)
    while any(_cursors.get(cursor) is not None for cursor in cursors):
        total += rebuild_hints(plane) + rebuild_steps(plane)
    return total


def _cursor(plane: str, name: str) -> str:
    return f"{plane}:{name}"


def _by_key(rows: Any) -> Page:
    """Rows in key order, read from the index alone: any other condition is for the choice to look at."""

    def page(after: Any, size: int) -> list[tuple[Any, UUID | None]]:
        later = rows if after is None else rows.filter(pk__gt=after)
        return [(key, key) for key in later.order_by("pk").values_list("pk", flat=True)[:size]]

    return page


def _found(plane: str, name: str, page: Page, choose: Choice, *, size: int = PAGE) -> list[tuple[UUID, UUID]]:
    """The chosen among the next stretch of rows, in order, with their execution; starts over after the last.

    Rows that are not chosen are looked past, so that however many of them hide none behind them.
    """
    cursor = _cursor(plane, name)
    chosen: list[tuple[UUID, UUID]] = []
    for begin in range(0, STRETCH, size):
        wanted = min(size, STRETCH - begin)
        entries = page(_cursors.get(cursor), wanted)
        keys = {key: position for position, key in entries if key is not None}
        fit = choose(list(keys))[: BATCH - len(chosen)] if keys else []
        chosen += fit
        if len(chosen) == BATCH:
            _cursors[cursor] = keys[fit[-1][0]]
            return chosen
        _cursors[cursor] = entries[-1][0] if len(entries) == wanted else None
        if len(entries) < wanted:
            break
    return chosen


def write_missing_letters(plane: str) -> int:
    """A backstop: what ended in failure without a dead letter gets one."""

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        letters = DeadLetter.objects.using(plane).filter(execution_id__in=keys)
        known = set(letters.values_list("execution_id", flat=True))
        return [(key, key) for key in keys if key not in known]

    written = 0
    for status in RETRYABLE:
        rows = Execution._base_manager.using(plane).filter(status=status)
        found = _found(plane, f"letters {status}", _by_key(rows), choose)
        written += _each(found, lambda key: _write_letter(plane, key), "the letter of execution %s is still missing")
    return written


def _write_letter(plane: str, execution_id: UUID) -> int:
    def attempt() -> int:
        with transaction.atomic(using=plane):
            _now, row = lock_execution(plane, execution_id)
            if row["status"] not in RETRYABLE:
                return 0
            if DeadLetter.objects.using(plane).filter(execution_id=execution_id).exists():
                return 0
            return execute(plane, dead_letter(plane, row, status=row["status"], error=row["encoded_error"]))

    return repeated(plane, attempt)


def _each(found: Iterable[tuple[UUID, UUID]], act: Callable[[UUID], int], failed: str) -> int:
    """What is changed by acting on each of these; one that fails is reported and stands in no other's way."""
    changed = 0
    for key, execution_id in found:
        try:
            changed += int(act(key))
        except Exception as error:
            if is_disconnect(error):
                raise
            report(error, failed, execution_id)
    return changed
