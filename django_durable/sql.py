"""Hand-written SQL in portable pieces, and the guarded batch that every transition is made of.

A **guarded batch** is one guard (an UPDATE or INSERT … SELECT that names its condition) and its
consequences, all or nothing. On PostgreSQL it is a single statement, the guard and each consequence a
data-modifying CTE, so in autocommit a transition costs one round trip and one commit. Elsewhere it is a
short transaction that begins with the guard's write; on SQLite that takes the write lock at once, whatever
the project's transaction mode. A consequence says ``{guard}`` where its condition goes.

All parts of a PostgreSQL batch share one snapshot: a guard may not depend on rows that another transaction
commits while this statement waits for a lock. Where that matters, lock first in a statement of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connections, transaction

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field, Model


class Sql(NamedTuple):
    """SQL text with ``%s`` placeholders (a literal per cent sign doubled) and its parameters."""

    text: str
    params: tuple[Any, ...] = ()


def join(separator: str, parts: Iterable[Sql]) -> Sql:
    """Concatenate pieces, parameters in order."""
    parts = tuple(parts)
    return Sql(separator.join(part.text for part in parts), tuple(p for part in parts for p in part.params))


def build(template: str, **parts: Sql | str) -> Sql:
    """Fill ``{name}`` holes of a template with pieces; parameters follow the order of the holes."""
    text: list[str] = []
    params: list[Any] = []
    for literal, name in _holes(template):
        text.append(literal)
        if name is None:
            continue
        part = parts[name] if name != "guard" else "{guard}"
        if isinstance(part, str):
            text.append(part)
        else:
            text.append(part.text)
            params.extend(part.params)
    return Sql("".join(text), tuple(params))


def _holes(template: str) -> Iterable[tuple[str, str | None]]:
    rest = template
    while "{" in rest:
        literal, _, tail = rest.partition("{")
        name, _, rest = tail.partition("}")
        yield literal, name
    yield rest, None


def is_postgres(connection: BaseDatabaseWrapper) -> bool:
    """Whether row locks, SKIP LOCKED and data-modifying CTEs can be used."""
    return connection.vendor == "postgresql"


def field_of(model: type[Model], name: str) -> Field[Any, Any]:
    """The concrete field of a model by name or attribute name (``execution_id``)."""
    for field in model._meta.concrete_fields:
        if name in (field.name, field.attname):
            return field
    raise KeyError(f"{model.__name__} has no column {name!r}")


def column_of(field: Field[Any, Any]) -> str:
    """The field's column; every concrete field of ours has one."""
    return field.column or field.attname


def value(connection: BaseDatabaseWrapper, field: Field[Any, Any], item: Any) -> Sql:
    """One value as this backend stores it in this field, cast to the column's type on PostgreSQL."""
    if isinstance(item, Sql):
        return item
    prepared = field.get_db_prep_save(item, connection)
    if not is_postgres(connection):
        if isinstance(item, datetime):
            # Django leaves the fraction out when it is zero; six digits everywhere keep text order time order.
            prepared = item.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
        return Sql("%s", (prepared,))
    # Without its length: an explicit cast to varchar(n) would cut a longer text silently.
    return Sql(f"%s::{(field.rel_db_type(connection) or 'text').partition('(')[0]}", (prepared,))


def assignments(connection: BaseDatabaseWrapper, model: type[Model], values: Mapping[str, Any]) -> Sql:
    """``column = value, …`` for an UPDATE."""
    parts = []
    for name, item in values.items():
        field = field_of(model, name)
        bound = value(connection, field, item)
        parts.append(Sql(f"{field.column} = {bound.text}", bound.params))
    return join(", ", parts)


def insert_row(
    connection: BaseDatabaseWrapper,
    model: type[Model],
    values: Mapping[str, Any],
    *,
    source: Sql | None = None,
    on_conflict: str = "",
) -> Sql:
    """``INSERT … SELECT values``: from ``source`` (text after the select list), or if the guard holds."""
    fields = [field_of(model, name) for name in values]
    columns = ", ".join(column_of(field) for field in fields)
    bound = join(", ", [value(connection, f, v) for f, v in zip(fields, values.values(), strict=True)])
    return build(
        f"INSERT INTO {model._meta.db_table} ({columns}) SELECT {{bound}} {{source}} {on_conflict}",
        bound=bound,
        source=source or Sql("FROM (SELECT 1 AS one) AS one WHERE {guard}"),
    )


def columns(model: type[Model], names: Sequence[str], prefix: str = "") -> str:
    """A select list."""
    return ", ".join(f"{prefix}{field_of(model, name).column}" for name in names)


def convert(
    connection: BaseDatabaseWrapper, model: type[Model], names: Sequence[str], row: Sequence[Any]
) -> dict[str, Any]:
    """A raw row as Python values, by the same converters as the ORM's."""
    if is_postgres(connection):
        # psycopg already returns uuid, datetime and bool; text columns are text. JSON columns are not read raw.
        return dict(zip(names, row, strict=True))
    return {name: _from_db(connection, field_of(model, name), raw) for name, raw in zip(names, row, strict=True)}


def _from_db(connection: BaseDatabaseWrapper, field: Field[Any, Any], raw: Any) -> Any:
    expression = field.cached_col
    for converter in connection.ops.get_db_converters(expression):
        raw = converter(raw, expression, connection)
    for converter in field.get_db_converters(connection):
        raw = converter(raw, expression, connection)
    return raw


def fetch(using: str, statement: Sql) -> list[tuple[Any, ...]]:
    """Execute one statement that returns rows."""
    connection = connections[using]
    with connection.cursor() as cursor, _every_text_readable(connection):
        cursor.execute(statement.text, list(statement.params))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


@contextmanager
def _every_text_readable(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """SQLite stores any bytes as text, and one row that is no UTF-8 would break every claim: read it as surrogates.

    A payload with such bytes is undecodable, which is the fate of its own execution alone.
    """
    raw = connection.connection
    if connection.vendor != "sqlite" or raw is None:
        yield
        return
    before, raw.text_factory = raw.text_factory, _lenient_text
    try:
        yield
    finally:
        raw.text_factory = before


def _lenient_text(stored: bytes) -> str:
    return stored.decode(errors="surrogateescape")


def execute(using: str, statement: Sql) -> int:
    """Execute one statement; the number of rows it touched."""
    with connections[using].cursor() as cursor:
        cursor.execute(statement.text.replace("{guard}", "1 = 1"), list(statement.params))
        return int(cursor.rowcount)


def run_guarded(using: str, guard: Sql, consequences: Sequence[Sql] = ()) -> list[tuple[Any, ...]]:
    """Run a guarded batch; the guard's returned rows, none when it did not hold (then nothing happened)."""
    if not consequences:
        return fetch(using, guard)
    if is_postgres(connections[using]):
        return fetch(using, _as_one_statement(guard, consequences))
    with transaction.atomic(using=using):
        rows = fetch(using, guard)
        if rows:
            for consequence in consequences:
                execute(using, consequence)
        return rows


def _as_one_statement(guard: Sql, consequences: Sequence[Sql]) -> Sql:
    held = "EXISTS (SELECT 1 FROM guard)"
    parts = [Sql(f"guard AS ({guard.text})", guard.params)]
    for number, consequence in enumerate(consequences):
        text = consequence.text.replace("{guard}", held)
        parts.append(Sql(f"c{number} AS ({text})", consequence.params))
    batch = join(", ", parts)
    return Sql(f"WITH {batch.text} SELECT * FROM guard", batch.params)
