"""Whether the tables are there, with every column that this version of the code uses."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connections

from django_durable.models import PLANE_MODELS, SPINE_MODELS

__all__ = ["missing_tables"]


def missing_tables(using: str) -> list[str]:
    """The missing tables, and the missing columns (``table.column``) of those that are there.

    Reads the database's catalogue only. Raises ``OperationalError`` where it cannot be reached.
    """
    return list(find_missing(using))


def find_missing(using: str) -> Iterator[str]:
    connection = connections[using]
    with connection.cursor() as cursor:
        present = set(connection.introspection.table_names(cursor))
        for model in (*PLANE_MODELS, *SPINE_MODELS):
            table = model._meta.db_table
            if table not in present:
                yield table
                continue
            described = connection.introspection.get_table_description(cursor, table)
            columns = {column.name for column in described}
            for field in model._meta.concrete_fields:
                if field.column is not None and field.column not in columns:
                    yield f"{table}.{field.column}"
