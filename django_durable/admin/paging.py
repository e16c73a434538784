"""Paging by key: a page begins behind the last row of the one before. Nothing is counted and nothing skipped.

Rows may lie on several shelves, one behind the other, each in the order of an index: open dead letters, then
the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db import connections
from django.db.models import BooleanField, Field, Model, QuerySet
from django.db.models.expressions import RawSQL

from django_durable.sql import column_of, field_of, join, value

__all__ = ["AFTER", "BEFORE", "LAST", "MergedShelf", "Page", "Shelf", "WrongCursor", "turn_page"]

AFTER, BEFORE, LAST = "after", "before", "last"
"""The parameters of a page: behind a row, in front of a row, the last rows."""

M = TypeVar("M", bound=Model)
R = TypeVar("R")


class WrongCursor(ValueError):
    """A page was asked for by a text that no page has given out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf(Generic[M]):
    """Rows in the order of ``groups`` and then ``fields``, which together tell every two rows apart."""

    rows: QuerySet[M]
    fields: tuple[str, ...]
    groups: tuple[str, ...] = ()
    """Columns of few values, each with many rows: a planner that compares them cannot tell how many lie behind."""
    same: tuple[str, ...] = ()
    """Columns that are equal in all rows, NULL for one, and stand before the others in the index to be used."""
    descending: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """What a place in the order is made of."""
        return (*self.groups, *self.fields)

    def take(self, count: int, *, key: Sequence[Any] | None = None, backwards: bool = False) -> list[M]:
        """The next rows behind ``key``, or from the beginning; backwards: in front of it, or from the end."""
        descending = self.descending is not backwards
        order = [f"-{name}" if descending else name for name in (*self.same, *self.keys)]
        found: list[M] = []
        for rows in self._beyond(key, descending):
            found += rows.order_by(*order)[: count - len(found)]
            if len(found) == count:
                break
        return found

    def key_of(self, row: M) -> list[str]:
        """What tells this row apart, as texts."""
        return [self._field(name).value_to_string(row) for name in self.keys]

    def read_key(self, texts: Sequence[Any]) -> list[Any]:
        """The same back as values. Raises ``WrongCursor``."""
        if len(texts) != len(self.keys):
            raise WrongCursor(f"a key here has {len(self.keys)} parts, not {len(texts)}")
        return [self._read_part(self._field(name), text) for name, text in zip(self.keys, texts, strict=True)]

    @staticmethod
    def _read_part(field: Field[Any, Any], text: Any) -> Any:
        try:
            part = field.to_python(text)
            field.run_validators(part)  # a number that the column cannot hold would be the database's error
        except (ValidationError, TypeError, ValueError, OverflowError):
            part = None
        if part is None or "\x00" in str(part):
            raise WrongCursor(f"a part of the key is no value of {field.name}")
        return part

    def _beyond(self, key: Sequence[Any] | None, descending: bool) -> Iterator[QuerySet[M]]:
        """What lies behind a place, the nearest part first: the rest of its group, then the groups behind it."""
        if key is None:
            yield self.rows
            return
        place = dict(zip(self.keys, key, strict=True))
        in_group = self.rows.filter(**{name: place[name] for name in self.groups})
        yield in_group.filter(self._comparison([place[name] for name in self.fields], descending))
        for at in reversed(range(len(self.groups))):
            shared = {name: place[name] for name in self.groups[:at]}
            name = self.groups[at]
            yield self.rows.filter(**shared, **{f"{name}__{'lt' if descending else 'gt'}": place[name]})

    def _comparison(self, parts: Sequence[Any], descending: bool) -> RawSQL:
        """Rows compared as a whole, which an index on these columns answers by going to the place."""
        connection = connections[self.rows.db]
        quote, table = connection.ops.quote_name, self.rows.model._meta.db_table
        fields = [self._field(name) for name in self.fields]
        columns = ", ".join(f"{quote(table)}.{quote(column_of(field))}" for field in fields)
        # Bound as the engine writes them: Django's own text for a time on SQLite has no fraction where it is zero.
        bound = join(", ", [value(connection, field, part) for field, part in zip(fields, parts, strict=True)])
        sign = "<" if descending else ">"
        return RawSQL(f"({columns}) {sign} ({bound.text})", bound.params, output_field=BooleanField())

    def _field(self, name: str) -> Field[Any, Any]:
        return field_of(self.rows.model, name)


class MergedShelf(Shelf[M]):
    """Several shelves in one order, which the first of their keys decides: of several databases, say."""

    __slots__ = ("_shelves",)
    _shelves: tuple[Shelf[M], ...]

    def __init__(self, shelves: Sequence[Shelf[M]]) -> None:
        first = shelves[0]
        super().__init__(rows=first.rows, fields=first.fields, descending=first.descending)
        object.__setattr__(self, "_shelves", tuple(shelves))

    def take(self, count: int, *, key: Sequence[Any] | None = None, backwards: bool = False) -> list[M]:
        """The next rows of all of them."""
        found = [shelf.take(count, key=key, backwards=backwards) for shelf in self._shelves]
        order = merge(*found, key=attrgetter(*self.fields), reverse=self.descending is not backwards)
        return list(order)[:count]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[R]):
    """Some rows, and what leads to their neighbours: empty where there is nothing."""

    rows: list[R]
    before: str = ""
    after: str = ""


def turn_page(shelves: Sequence[Shelf[M]], asked: Mapping[str, str], size: int) -> Page[M]:
    """The page that the parameters ask for, the first one by default. One query a shelf and group at most.

    Raises ``WrongCursor``.
    """
    backwards = BEFORE in asked or LAST in asked
    text = asked.get(BEFORE) or asked.get(AFTER)
    at, key = _read(shelves, text) if text else (len(shelves) - 1 if backwards else 0, None)
    found: list[tuple[int, M]] = []
    while 0 <= at < len(shelves) and len(found) <= size:
        # One row more than asked for: it tells whether there is another page.
        taken = shelves[at].take(size + 1 - len(found), key=key, backwards=backwards)
        found += [(at, row) for row in taken]
        at, key = (at - 1 if backwards else at + 1), None
    more, found = len(found) > size, found[:size]
    if backwards:
        found.reverse()
    # Where one came from, there is something; it may have gone since, then that page is empty.
    earlier, later = (more, bool(text)) if backwards else (bool(text), more)
    return Page(
        rows=[row for _at, row in found],
        before=_write(shelves, found[0]) if found and earlier else "",
        after=_write(shelves, found[-1]) if found and later else "",
    )


def _write(shelves: Sequence[Shelf[M]], place: tuple[int, M]) -> str:
    at, row = place
    return json.dumps([at, *shelves[at].key_of(row)], separators=(",", ":"))


def _read(shelves: Sequence[Shelf[M]], text: str) -> tuple[int, list[Any]]:
    try:
        at, *parts = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise WrongCursor(f"{text[:64]!r} leads to no page") from None
    if type(at) is not int or not 0 <= at < len(shelves) or not all(isinstance(part, str) for part in parts):
        raise WrongCursor(f"{text[:64]!r} leads to no page")
    return at, shelves[at].read_key(parts)
