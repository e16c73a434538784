"""A sweep looks through a table a stretch at a time: what it wants, wherever that stands, and where it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from django_durable.models import DispatchHint
from django_durable.planes.registry import name_of
from django_durable.planes.selection import spine_alias

BATCH = 200
"""Rows that one pass changes, at most."""

PAGE = 250
"""Ids that are compared between spine and plane at a time: they may be two databases. Few enough to be looked up one
by one in an index, whatever a database believes about its tables."""

STRETCH = 10_000
"""Rows that one pass of a sweep through a whole table looks past, at most."""

_cursors: dict[str, Any] = {}

Page = Callable[[Any, int], list[tuple[Any, UUID | None]]]
"""So many rows after a position, each with its own position and its key; ``None`` for a row to be looked past."""

Choice = Callable[[list[UUID]], list[tuple[UUID, UUID]]]
"""Of these keys, those that a sweep wants, in the same order, each with its execution's id."""


def hints_of(plane: str) -> QuerySet[DispatchHint]:
    """The spine's hints for the executions of one plane."""
    return DispatchHint.objects.using(spine_alias()).filter(plane=name_of(plane))


def owners_of(hints: QuerySet[DispatchHint], keys: list[UUID]) -> dict[UUID, UUID]:
    """The execution of each of these hints that is among the rows."""
    return dict(hints.filter(pk__in=keys).values_list("pk", "execution_id"))


def begin_again(plane: str, names: Iterable[str]) -> None:
    """Let the next look at each of these begin with the first row."""
    for name in names:
        _cursors.pop(_cursor(plane, name), None)


def is_under_way(plane: str, names: Iterable[str]) -> bool:
    """Whether one of these has not come to its last row."""
    return any(_cursors.get(_cursor(plane, name)) is not None for name in names)


def _cursor(plane: str, name: str) -> str:
    return f"{plane}:{name}"


def by_key(rows: Any) -> Page:
    """Rows in key order, read from the index alone: any other condition is for the choice to look at."""

    def page(after: Any, size: int) -> list[tuple[Any, UUID | None]]:
        later = rows if after is None else rows.filter(pk__gt=after)
        return [(key, key) for key in later.order_by("pk").values_list("pk", flat=True)[:size]]

    return page


def look_through(plane: str, name: str, page: Page, choose: Choice, *, size: int = PAGE) -> list[tuple[UUID, UUID]]:
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
