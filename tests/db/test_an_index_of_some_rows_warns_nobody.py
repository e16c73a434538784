"""Partial indexes where there are such, and no word of them where there are none (MariaDB)."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.db import models

from django_durable.models import Checkpoint, Execution
from django_durable.models.partial_index import PartialIndex
from tests.driving import USING, connection

PARTIAL = [
    (model, index)
    for model in (Checkpoint, Execution)
    for index in model._meta.indexes
    if type(index) is PartialIndex
]


def made(model: type[models.Model], index: PartialIndex) -> str:
    """The statement, without the editor's transaction: SQLite has one that asks for none around it."""
    return str(index.create_sql(model, connection.schema_editor(collect_sql=True)))


@pytest.mark.django_db
@pytest.mark.parametrize(("model", "index"), PARTIAL, ids=[index.name for _model, index in PARTIAL])
def test_it_has_some_rows_where_the_database_can(
    model: type[models.Model], index: PartialIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert " WHERE " in made(model, index)
    monkeypatch.setattr(connection.features, "supports_partial_indexes", False)
    assert " WHERE " not in made(model, index)


@pytest.mark.django_db
def test_a_database_without_partial_indexes_is_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PARTIAL
    monkeypatch.setattr(connection.features, "supports_partial_indexes", False)
    ours = [found for found in run_checks(databases=[USING]) if "django_durable" in str(found.obj)]
    assert ours == []


def test_migrations_find_it_again() -> None:
    for _model, index in PARTIAL:
        again = index.clone()
        assert again == index
        assert isinstance(again, PartialIndex)
        assert again.rows == index.rows
