"""Prune: whole trees that have ended are removed, what belonged to them after that, in pieces of bounded size.

One transaction deletes the executions of some trees and leaves a mark for each (``PrunedExecution``). Histories of
any length then go in transactions of their own; the mark goes last, with the execution's route on the spine. A
process that dies in between leaves marks, which the next pass begins with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import product
from typing import Any, TypeVar
from uuid import UUID

from django.db import connections, transaction
from django.db.models import Count, F, Model, QuerySet

from django_durable.clock import read_now
from django_durable.engine.contention import repeated
from django_durable.engine.retention import Ended, Terms
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.verbs import insert_action
from django_durable.models import (
    ApprovalRequest,
    Checkpoint,
    DeadLetter,
    EventWait,
    Execution,
    ExecutionRoute,
    Join,
    Message,
    OperatorNote,
    Outbox,
    PrunedExecution,
)
from django_durable.planes.selection import spine_alias
from django_durable.sql import execute, is_postgres

__all__ = ["BELONGINGS", "Choice", "choose", "named", "packed", "pieces", "prune", "remove_remains"]

T = TypeVar("T")

BELONGINGS: tuple[type[Model], ...] = (
    Checkpoint,
    Message,
    EventWait,
    ApprovalRequest,
    Join,
    DeadLetter,
    OperatorNote,
)

ROWS = 1_000
"""Rows that one transaction deletes, of histories or of executions; a tree of more executions goes as one."""

MARKS = 200
"""Pruned executions whose remains are looked at together."""

KEYS = 200
"""Keys in one statement: few enough to be looked up one by one in an index."""


@dataclass(slots=True)
class Choice:
    """Trees that may go: the ids of all their executions; and why others may not."""

    roots: list[UUID] = field(default_factory=list)
    members: list[UUID] = field(default_factory=list)
    kept: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Member:
    id: UUID
    root_id: UUID
    status: str
    finished_at: datetime | None
    moving: bool


def choose(using: str, ended: Sequence[Ended], terms: Terms, now: datetime, *, lock: bool = False) -> Choice:
    """Of these roots, those whose trees may go, with all that they consist of.

    ``lock`` takes the rows' locks; a tree of which somebody else holds one is left for the next time.
    """
    choice = Choice()
    units = _units(using, ended, choice)
    members: dict[UUID, list[_Member]] = {}
    for roots in pieces([root for unit in units for root in unit]):
        members |= _members(using, roots, lock=lock)
    barred = _barred(using, [member.id for rows in members.values() for member in rows], terms)
    wanted = {one.id: one for one in ended}
    for unit in units:
        rows = [member for root in unit for member in members.get(root, [])]
        period = terms.period(wanted[unit[-1]].workflow, wanted[unit[-1]].status)
        why = _obstacle(unit, rows, barred, None if period is None else now - period)
        if why is not None:
            choice.kept[why] += 1
        else:
            choice.roots.append(unit[-1])
            choice.members += [member.id for member in rows]
    return choice


def _units(using: str, ended: Sequence[Ended], choice: Choice) -> list[tuple[UUID, ...]]:
    """The roots that go together: the last run of a chain takes the first along, once those between are gone."""
    lasts = [one.chain_id for one in ended if one.ends_chain]
    others = Counter(
        Execution._base_manager.using(using).filter(chain_id__in=lasts, run__gt=1).values_list("chain_id", flat=True)
        if lasts
        else ()
    )
    units: list[tuple[UUID, ...]] = []
    for one in ended:
        if one.is_kept_for_its_chain or (one.ends_chain and others[one.chain_id] > 1):
            choice.kept["chain"] += 1
        else:
            units.append((one.chain_id, one.id) if one.ends_chain else (one.id,))
    return units


def _members(using: str, roots: Sequence[UUID], *, lock: bool) -> dict[UUID, list[_Member]]:
    """The executions of each tree. One that is locked by somebody else is left out, and its tree with it."""
    every = Execution._base_manager.using(using).order_by("pk")
    seen: set[UUID] | None = None
    rows: list[QuerySet[Execution[Any]]] = [  # each by an index of its own
        every.filter(pk__in=roots),
        every.filter(root_id__in=roots).exclude(root_id=F("pk")),
    ]
    if lock and is_postgres(connections[using]):
        seen = {pk for part in rows for pk in part.values_list("pk", flat=True)}
        rows = [part.select_for_update(skip_locked=True) for part in rows]
    found: dict[UUID, list[_Member]] = {}
    for part in rows:
        for row in part.values_list("pk", "root_id", "status", "finished_at", "moving"):
            found.setdefault(row[1], []).append(_Member(*row))
    if seen is not None:
        for missing in seen - {member.id for tree in found.values() for member in tree}:
            for owner in every.filter(pk=missing).values_list("root_id", flat=True):
                found.pop(owner, None)
    return found


def _barred(using: str, members: Sequence[UUID], terms: Terms) -> dict[UUID, str]:
    """Executions that keep their tree, and why."""
    barred: dict[UUID, str] = {}
    for ids in pieces(members):
        letters = DeadLetter.objects.using(using).filter(execution_id__in=ids, retried_at=None)
        if not terms.open_letters:
            barred |= dict.fromkeys(letters.values_list("execution_id", flat=True), "open_dead_letter")
        intents = Outbox.objects.using(using).filter(execution_id__in=ids)
        barred |= dict.fromkeys(intents.values_list("execution_id", flat=True), "undelivered_intent")
    return barred


def _obstacle(
    unit: Sequence[UUID], rows: Sequence[_Member], barred: dict[UUID, str], floor: datetime | None
) -> str | None:
    """Why these trees stay; ``None``: they may go."""
    if not set(unit) <= {row.id for row in rows}:
        return "busy"
    if any(row.status not in SOURCES["prune"] or row.finished_at is None for row in rows):
        return "unfinished_tree"
    if any(row.moving for row in rows):
        return "moving"
    if floor is None or any(row.finished_at is not None and row.finished_at > floor for row in rows):
        return "younger_tree"
    return next((barred[row.id] for row in rows if row.id in barred), None)


def prune(using: str, ended: Sequence[Ended], terms: Terms) -> Choice:
    """Remove the trees of these roots that may go; what was removed. Their remains are for ``remove_remains``.

    Everything is looked at again under the rows' locks: a tree that somebody reopens meanwhile stays.
    """

    def attempt() -> Choice:
        with transaction.atomic(using=using):
            if not is_postgres(connections[using]):  # there the write comes first: it is the lock
                first = Execution._base_manager.using(using).filter(pk__in=[one.id for one in ended])
                first.update(moving=F("moving"))
            now = read_now(using)
            choice = choose(using, ended, terms, now, lock=True)
            marks = [PrunedExecution(execution_id=one, pruned_at=now) for one in choice.members]
            PrunedExecution.objects.using(using).bulk_create(marks, batch_size=KEYS)
            _delete(Execution._base_manager.using(using), "pk", choice.members)
            return choice

    return repeated(using, attempt)


def packed(using: str, ended: Sequence[Ended]) -> Iterator[list[Ended]]:
    """These roots in portions whose trees have at most ``ROWS`` executions together, or one tree alone."""
    sizes: dict[UUID, int] = {}
    for roots in pieces([one.id for one in ended]):
        rows = Execution._base_manager.using(using).filter(root_id__in=roots).exclude(root_id=F("pk"))
        sizes |= dict(rows.order_by().values_list("root_id").annotate(Count("pk")))
    yield from _portions(ended, lambda one: sizes.get(one.id, 0) + 1)


def pieces(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """The keys, as many at a time as one statement takes."""
    return (keys[begin : begin + KEYS] for begin in range(0, len(keys), KEYS))


def _portions(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    portion: list[T] = []
    total = 0
    for item in items:
        if portion and total + size(item) > ROWS:
            yield portion
            portion, total = [], 0
        portion.append(item)
        total += size(item)
    if portion:
        yield portion


def _delete(rows: QuerySet[Any], column: str, ids: Sequence[UUID]) -> int:
    """Without asking for the rows first."""
    return sum(rows.filter(**{f"{column}__in": keys})._raw_delete(rows.db) or 0 for keys in pieces(ids))


def remove_remains(using: str) -> Counter[str] | None:
    """Remove what belonged to some pruned executions; how many rows of each table. ``None``: there is nothing.

    The spine hears of it first: a plane's marks are what a crash in between is found by.
    """
    ids = list(PrunedExecution.objects.using(using).order_by("pk").values_list("pk", flat=True)[:MARKS])
    if not ids:
        return None
    if using != spine_alias():
        _tell_spine(using, ids)
    removed: Counter[str] = Counter()
    sizes = _sizes(using, ids)
    models = [model for model in BELONGINGS if sizes[model]]  # nothing joins what is gone
    for portion in _portions(ids, lambda one: sum(counts[one] for counts in sizes.values())):
        for model in models:
            if sizes[model][portion[0]] > ROWS:
                removed[named(model)] += _remove_long(using, model, portion[0])
        removed += _remove_whole(using, models, portion)
    return removed


def named(model: type[Model]) -> str:
    """A table's name for people."""
    return str(model._meta.verbose_name_plural).replace(" ", "_")


def _tell_spine(using: str, ids: Sequence[UUID]) -> None:
    spine = spine_alias()
    for keys in pieces(ids):
        for note in OperatorNote.objects.using(using).filter(execution_id__in=keys).order_by("pk"):
            execute(spine, insert_action(note))  # where the copy that follows a verb has not been made yet
    repeated(spine, lambda: _delete(ExecutionRoute.objects.using(spine).all(), "pk", ids))


def _sizes(using: str, ids: Sequence[UUID]) -> dict[type[Model], Counter[UUID]]:
    """How many rows hang on each, by table."""
    sizes: dict[type[Model], Counter[UUID]] = {model: Counter() for model in BELONGINGS}
    for model, keys in product(BELONGINGS, pieces(ids)):
        rows = model._base_manager.using(using).filter(execution_id__in=keys).order_by()
        sizes[model].update(dict(rows.values_list("execution_id").annotate(Count("execution_id"))))
    return sizes


def _remove_whole(using: str, models: Sequence[type[Model]], ids: Sequence[UUID]) -> Counter[str]:
    """What is left of these, and their marks: one transaction."""

    def attempt() -> Counter[str]:
        removed: Counter[str] = Counter()
        with transaction.atomic(using=using):
            for model in models:
                removed[named(model)] += _delete(model._base_manager.using(using), "execution_id", ids)
            _delete(PrunedExecution.objects.using(using), "pk", ids)
        return removed

    return repeated(using, attempt)


def _remove_long(using: str, model: type[Model], execution_id: UUID) -> int:
    """Remove rows of a long history in transactions of their own until few enough are left for one."""
    rows = model._base_manager.using(using).filter(execution_id=execution_id).order_by("pk")
    removed = 0
    while len(keys := list(rows.values_list("pk", flat=True)[:ROWS])) == ROWS:
        for some in pieces(keys):
            doomed = rows.filter(pk__in=some).order_by()
            removed += repeated(using, partial(doomed._raw_delete, using)) or 0
    return removed
