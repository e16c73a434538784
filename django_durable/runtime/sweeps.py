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
from django.db.models import Q

from django_durable.clock import read_now
from django_durable.database_errors import is_disconnect
from django_durable.dispatch import outbox
from django_durable.dispatch.hints import hinted
from django_durable.engine.contention import repeated
from django_durable.engine.locking import lock_execution
from django_durable.engine.standing import dispatched
from django_durable.engine.transitions import TAKES_RESULTS
from django_durable.engine.transitions.leave import dead_letter
from django_durable.engine.transitions.overlooked import is_overlooked, wake_overlooked
from django_durable.engine.transitions.republish import republish, republish_steps
from django_durable.engine.transitions.verbs import insert_action
from django_durable.models import DeadLetter, DispatchHint, Execution, ExecutionRoute, OperatorAction, OperatorNote
from django_durable.models.execution import ACTIVE, RETRYABLE, TERMINAL
from django_durable.planes.registry import name_of
from django_durable.planes.selection import spine_alias
from django_durable.quiet import report
from django_durable.runtime.stretch import begin_again, by_key, hints_of, is_under_way, look_through, owners_of
from django_durable.sql import execute

UNUSED_ROUTE = timedelta(hours=1)
"""A route without an execution is removed after so long: its start may still be in an open transaction."""


def relay_outbox(plane: str) -> int:
    """Intents whose publication was cut short are published, oldest first."""
    if plane == spine_alias():
        return 0
    return outbox.relay(plane, name_of(plane))


def drop_dangling_hints(plane: str) -> int:
    """Unleased hints whose execution is gone or has ended are deleted."""
    unleased = hints_of(plane).filter(token=None)

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        owners = owners_of(unleased, keys)
        rows = Execution._base_manager.using(plane).filter(pk__in=list(owners.values()))
        alive = set(rows.exclude(status__in=TERMINAL).values_list("pk", flat=True))
        return [(key, owners[key]) for key in keys if key in owners and owners[key] not in alive]

    page = by_key(DispatchHint.objects.using(spine_alias()))
    doomed = [hint_id for hint_id, _execution in look_through(plane, "dangling", page, choose)]
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

    page = by_key(ExecutionRoute.objects.using(spine))
    doomed = [execution_id for execution_id, _same in look_through(plane, "routes", page, choose)]
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
    missing = [note_id for note_id, _same in look_through(plane, "actions", by_key(notes), choose)]
    return sum(execute(spine, insert_action(note)) for note in notes.filter(pk__in=missing).order_by("pk"))


def rebuild_hints(plane: str) -> int:
    """Live executions without the hint of their revision that need one get it: one stretch of each status.

    A hint of an earlier revision, which a restored spine may have, would be dropped, and not before it is due.
    """
    rows = Execution._base_manager.using(plane)

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        known = hinted(spine_alias(), keys)
        waits = Q(status__in=("waiting", "paused"), wake_at=None, deadline=None)
        needy = dict(rows.filter(~waits, pk__in=keys, moving=False, in_line=False).values_list("pk", "revision"))
        return [(key, key) for key in keys if key in needy and known.get(key, 0) < needy[key]]

    rebuilt = 0
    for status in ACTIVE:
        found = look_through(plane, f"rebuild {status}", by_key(rows.filter(status=status)), choose)
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
        found = look_through(plane, f"steps {status}", by_key(rows.filter(status=status)), choose)
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

    found = look_through(plane, "parents", by_key(rows), choose)
    return _each(found, lambda key: wake_overlooked(plane, key), "execution %s could not be woken")


def _looks_overlooked(plane: str, row: Mapping[str, Any]) -> bool:
    try:
        return is_overlooked(plane, row)
    except ValueError as error:  # its list was written past the engine
        report(error, "it cannot be read what execution %s waits for", row["id"])
        return False


def rebuild_everything(plane: str) -> int:
    """Every stretch, from the first; for an emptied or restored spine."""
    names = [f"{name} {status}" for name in ("rebuild", "steps") for status in ACTIVE]
    begin_again(plane, names)
    total = rebuild_hints(plane) + rebuild_steps(plane)
    while is_under_way(plane, names):
        total += rebuild_hints(plane) + rebuild_steps(plane)
    return total


def write_missing_letters(plane: str) -> int:
    """A backstop: what ended in failure without a dead letter gets one."""

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        letters = DeadLetter.objects.using(plane).filter(execution_id__in=keys)
        known = set(letters.values_list("execution_id", flat=True))
        return [(key, key) for key in keys if key not in known]

    written = 0
    for status in RETRYABLE:
        rows = Execution._base_manager.using(plane).filter(status=status)
        found = look_through(plane, f"letters {status}", by_key(rows), choose)
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
