"""Stored values in tables: the small ones are read, of the large ones only how large they are."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Case, F, QuerySet, When
from django.db.models.functions import Left, Length
from django.utils.translation import gettext as _

from django_durable.admin.columns import type_in
from django_durable.admin.reader import Failure, Reader, Shown, kind_of_start

__all__ = ["read_stored", "read_stored_failure", "with_stored"]

FETCHED: Final = 20_000
"""Bytes of the largest value that is read for a row of a table."""
ROOM: Final = 1_000
"""Characters of a value in a row: 200 of them, escaped, have to fit into two megabytes."""
START: Final = 300


class ByteSize(Length):
    """The size of a stored text. PostgreSQL knows it without unpacking the text."""

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, function="OCTET_LENGTH", **extra)


def with_stored(rows: QuerySet[Any, Any], column: str) -> QuerySet[Any, Any]:
    """The rows with ``<column>_size``, ``_start`` and ``_text``, the last one NULL where it is too large."""
    small = When(**{f"{column}_size__lte": FETCHED}, then=F(column))
    annotated: QuerySet[Any, Any] = rows.annotate(
        **{f"{column}_size": ByteSize(column), f"{column}_start": Left(column, START), f"{column}_text": Case(small)}
    )
    return annotated


def read_stored(row: Any, column: str, reader: Reader) -> Shown | None:
    """A value of a row that ``with_stored`` has prepared."""
    size = getattr(row, f"{column}_size")
    if size is None or size <= FETCHED:
        return reader.value(getattr(row, f"{column}_text"), room=ROOM)
    summary = f"{kind_of_start(getattr(row, f'{column}_start'))}, {size} bytes"
    note = _("Too large for this page. `manage.py durable history` with --payloads prints it.")
    return Shown(summary=summary, note=note if reader.payloads else "")


def read_stored_failure(row: Any, column: str, reader: Reader) -> Failure | None:
    """An error of a row that ``with_stored`` has prepared."""
    size = getattr(row, f"{column}_size")
    if size is None or size <= FETCHED:
        return reader.failure(getattr(row, f"{column}_text"), room=ROOM)
    # Nothing that the engine writes is as large as this.
    text = Shown(summary=f"{size} bytes")
    return Failure(type=type_in(getattr(row, f"{column}_start")), message=text, traceback=text)
