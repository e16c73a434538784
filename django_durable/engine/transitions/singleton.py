"""Singletons: how many executions of one (tenant, workflow, key) may run at once, and who waits until one ends.

A slot is a row with a unique key, inserted in the transaction of the start and deleted in that of the end, which
admits the next one that waits and that nobody has locked. Who waits has no hint and costs nothing. Start and end do
not lock each other: a start that has to wait looks once more after its commit, and the end looks for those who wait
after it has freed its slot, so whichever is later sees the other; *singletons* finds what a crash leaves between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, OperationalError, connections, transaction

from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.journal import EXECUTION
from django_durable.engine.locking import lock_execution
from django_durable.engine.standing import standing_intent
from django_durable.engine.transitions.leave import update_execution
from django_durable.errors import ExecutionConflict, QueueFull
from django_durable.models import Execution, SingletonPlace
from django_durable.models.execution import ACTIVE
from django_durable.sql import build, convert, execute, fetch, field_of, is_postgres, value

PLACE = SingletonPlace._meta.db_table

ENDED = 500
"""Places that one pass looks at."""

TRIES = 5
"""How often a start tries for a place that others take at the same moment."""


@dataclass(frozen=True, slots=True)
class Place:
    """One execution at one key."""

    execution_id: UUID
    mark: str
    limit: int


def mark_of(tenant: str, workflow: str, key: str) -> str:
    """What stands for a singleton's key in its places."""
    return hashlib.sha256("\x00".join((tenant, workflow, key)).encode()).hexdigest()


def mark_of_row(row: Mapping[str, Any]) -> str | None:
    """The mark of an execution's row; ``None``: it is no singleton."""
    return None if row["singleton"] is None else mark_of(row["tenant"], row["workflow"], row["singleton"])


# -- coming --------------------------------------------------------------------------------------------------


def enter(using: str, place: Place, depth: int | None, policy: str) -> bool:
    """Take a slot, or a place in the line; whether it is a slot. Within the caller's transaction.

    Raises ``QueueFull`` where there is neither, ``ExecutionConflict`` where this transaction's snapshot cannot see
    who has the slot.
    """
    try:
        with transaction.atomic(using=using):
            if any(_take_slot(using, place) for _ in range(TRIES)):
                return True
            if policy != "reject" and _wait_in_line(using, place, depth):
                transaction.on_commit(lambda: admit_waiting(using, place.mark), using=using, robust=True)
                return False
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != "40001":
            raise
        raise ExecutionConflict(
            "a singleton's slot was taken by an execution that this transaction's snapshot cannot see; retry the"
            " whole transaction"
        ) from error
    raise QueueFull(_full(place, depth, policy))


def _full(place: Place, depth: int | None, policy: str) -> str:
    if policy == "reject" or depth == 0:
        return f"{place.limit} execution(s) of this singleton run already, and no more may wait; start it again later"
    return (
        f"{place.limit} execution(s) of this singleton run already and {depth} wait, the most; start it again later"
    )


def _take_slot(using: str, place: Place) -> bool:
    """The first free number, unless others wait already: one insert, whose unique key decides."""
    free = f"n.n NOT IN (SELECT p.number FROM {PLACE} p WHERE p.mark = {{mark}} AND p.number > 0)"
    nobody_waits = (
        f"NOT EXISTS (SELECT 1 FROM {PLACE} w WHERE w.mark = {{mark}} AND w.number IS NULL)"
        f" AND NOT EXISTS (SELECT 1 FROM {PLACE} w WHERE w.mark = {{mark}} AND w.number < 0)"
    )
    return _insert(using, place, place.limit, "n.n", f"{free} AND {nobody_waits}")


def _wait_in_line(using: str, place: Place, depth: int | None) -> bool:
    if depth is None:
        return _insert(using, place, 1, "NULL", "1 = 1")
    if depth == 0:
        return False
    free = f"-n.n NOT IN (SELECT p.number FROM {PLACE} p WHERE p.mark = {{mark}} AND p.number < 0)"
    return any(_insert(using, place, depth, "-n.n", free) for _ in range(TRIES))


def _insert(using: str, place: Place, up_to: int, number: str, condition: str) -> bool:
    connection = connections[using]
    statement = build(
        f"INSERT INTO {PLACE} (mark, number, execution_id) WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n.n + 1"
        f" FROM n WHERE n.n < {up_to}) SELECT {{mark}}, CAST({number} AS integer), {{id}} FROM n WHERE {condition}"
        " ORDER BY n.n LIMIT 1 ON CONFLICT DO NOTHING",
        mark=value(connection, field_of(SingletonPlace, "mark"), place.mark),
        id=value(connection, field_of(SingletonPlace, "execution_id"), place.execution_id),
    )
    return execute(using, statement) > 0


def make_room(using: str, place: Place, policy: str) -> None:
    """What the policy of a start that has to wait does to those before it; its own row is written."""
    if policy not in ("cancel_running", "cancel_waiting"):
        return
    from django_durable.engine.transitions.verbs import Attribution, cancel

    by = Attribution("singleton", f"superseded by execution {place.execution_id}")
    others = SingletonPlace.objects.using(using).filter(mark=place.mark).exclude(execution_id=place.execution_id)
    waiting = others.exclude(number__gt=0).order_by("id").values_list("execution_id", flat=True)
    running = others.filter(number__gt=0).order_by("id").values_list("execution_id", flat=True)
    for execution_id in list(waiting):
        cancel(using, execution_id, by)
    if policy == "cancel_running":
        for execution_id in list(running[:1]):
            cancel(using, execution_id, by)


def enter_again(using: str, row: Mapping[str, Any]) -> bool:
    """Of a locked execution that is to go on, from its end or from a pause: whether it has to wait for a slot."""
    mark = mark_of_row(row)
    if mark is None:
        return False
    known = SingletonPlace.objects.using(using).filter(execution_id=row["id"]).values_list("number").first()
    if known is not None:
        waits = known[0] is None or known[0] < 0
        if waits:
            transaction.on_commit(lambda: admit_waiting(using, mark), using=using, robust=True)
        return waits
    # Whoever comes back may wait, however long the line is.
    return not enter(using, Place(row["id"], mark, row["singleton_limit"]), None, "queue")


# -- going ---------------------------------------------------------------------------------------------------


def free_slot(using: str, row: Mapping[str, Any]) -> None:
    """The execution has ended, in this transaction: its place is free, and the next one that waits is admitted."""
    mark = mark_of_row(row)
    if mark is not None and give_up(using, row["id"]):
        admit_next(using, mark)


def give_up(using: str, execution_id: UUID) -> int:
    """Delete an execution's place; whether it had one."""
    own = value(connections[using], field_of(SingletonPlace, "execution_id"), execution_id)
    return execute(using, build(f"DELETE FROM {PLACE} WHERE execution_id = {{id}}", id=own))


def pass_on(using: str, execution_id: UUID, successor: UUID) -> None:
    """The successor of a run has its place."""
    field = field_of(SingletonPlace, "execution_id")
    statement = build(
        f"UPDATE {PLACE} SET execution_id = {{new}} WHERE execution_id = {{old}}",
        new=value(connections[using], field, successor),
        old=value(connections[using], field, execution_id),
    )
    execute(using, statement)


def admit_waiting(using: str, mark: str) -> int:
    """Admit those who wait while there are free slots; how many. A transaction of its own."""

    def attempt() -> int:
        with transaction.atomic(using=using):
            if not is_postgres(connections[using]):
                _touch(using, mark)  # begins with a write, which takes the lock that everybody needs
            return admit_next(using, mark)

    return repeated(using, attempt)


def _touch(using: str, mark: str) -> None:
    bound = value(connections[using], field_of(SingletonPlace, "mark"), mark)
    execute(using, build(f"UPDATE {PLACE} SET mark = mark WHERE mark = {{mark}}", mark=bound))


def admit_next(using: str, mark: str) -> int:
    """Within the open transaction: the first of those who wait, then the next, until the slots are taken.

    Who is locked at this moment is passed over, so that nobody here waits for a lock while holding others.
    """
    admitted = 0
    while (found := _first_waiting(using, mark)) is not None:
        place_id, execution_id = found
        now, row = lock_execution(using, execution_id)
        if not _give_slot(using, mark, place_id, row["singleton_limit"]):
            break
        _publish(using, now, row)
        admitted += 1
    return admitted


def _first_waiting(using: str, mark: str) -> tuple[int, UUID] | None:
    connection = connections[using]
    lock = "FOR UPDATE OF p, e SKIP LOCKED" if is_postgres(connection) else ""
    statement = build(
        f"SELECT p.id, p.execution_id FROM {PLACE} p JOIN {EXECUTION} e ON e.id = p.execution_id"
        " WHERE p.mark = {mark} AND (p.number IS NULL OR p.number < 0) AND e.in_line AND e.status = 'pending'"
        f" AND NOT e.moving ORDER BY p.id LIMIT 1 {lock}",
        mark=value(connection, field_of(SingletonPlace, "mark"), mark),
    )
    rows = fetch(using, statement)
    if not rows:
        return None
    row = convert(connection, SingletonPlace, ("id", "execution_id"), rows[0])
    return row["id"], row["execution_id"]


def _give_slot(using: str, mark: str, place_id: int, limit: int) -> bool:
    """A free number for a place, if there is one; where another takes the same at this moment, that one has it."""
    rows = SingletonPlace.objects.using(using)
    for _ in range(TRIES):
        taken = set(rows.filter(mark=mark, number__gt=0).values_list("number", flat=True))
        free = next((number for number in range(1, limit + 1) if number not in taken), None)
        if free is None:
            return False
        try:
            with transaction.atomic(using=using):
                return bool(rows.filter(pk=place_id).update(number=free))
        except IntegrityError:
            continue
    return False


def _publish(using: str, now: datetime, row: Mapping[str, Any]) -> None:
    """Give an admitted execution its intent, and the deadline that begins here."""
    later = row["run_after"] if row["run_after"] is not None and row["run_after"] > now else None
    timeout = row["timeout_seconds"]
    changes = {
        "in_line": False,
        "revision": row["revision"] + 1,
        "wake_at": later,
        "deadline": None if timeout is None else (later or now) + timedelta(seconds=timeout),
    }
    here = build("e.id = {id}", id=value(connections[using], field_of(Execution, "id"), row["id"]))
    fetch(using, update_execution(using, changes, here))
    intent = standing_intent(using, {**row, **changes})
    assert intent is not None, "a pending execution stands for an intent"
    SpineWork(using).publish(intent).run()


def in_line(using: str, after: str, limit: int) -> list[str]:
    """Keys with somebody waiting, a page in their order: what the sweep looks at."""
    bound = value(connections[using], field_of(SingletonPlace, "mark"), after)
    statement = build(
        f"SELECT DISTINCT mark FROM {PLACE} WHERE mark > {{after}} AND (number IS NULL OR number < 0)"
        f" ORDER BY mark LIMIT {limit}",
        after=bound,
    )
    return [str(row[0]) for row in fetch(using, statement)]


def drop_ended_places(using: str, after: int) -> int:
    """Give up places of executions that have ended or are gone: a stretch of the table, whose last key it returns.

    Nothing leaves any, except what writes past the engine. 0: the table is through.
    """
    rows = SingletonPlace.objects.using(using).filter(pk__gt=after).order_by("pk")
    page = list(rows.values_list("pk", "execution_id", "mark")[:ENDED])
    owners = [execution_id for _key, execution_id, _mark in page]
    alive = set(
        Execution._base_manager.using(using).filter(pk__in=owners, status__in=ACTIVE).values_list("pk", flat=True)
    )
    for _key, execution_id, mark in page:
        if execution_id not in alive and give_up(using, execution_id):
            admit_waiting(using, mark)
    return page[-1][0] if len(page) == ENDED else 0
