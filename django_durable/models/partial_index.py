"""PartialIndex: an index of some rows, of all where the database has no such indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.backends.ddl_references import Statement


class PartialIndex(models.Index):
    """Django's ``Index`` with a ``condition``, without its warning (models.W037) that MariaDB ignores the condition.

    An index of ours is for finding rows fast and means nothing else: where it has all of them, it still does.
    """

    def __init__(self, *, rows: models.Q, **options: Any) -> None:
        super().__init__(**options)
        self.rows = rows

    def create_sql(
        self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor, using: str = "", **kwargs: Any
    ) -> Statement:
        """The statement that makes it."""
        condition = self.rows if schema_editor.connection.features.supports_partial_indexes else None
        index = models.Index(fields=self.fields, name=self.name, condition=condition)
        return index.create_sql(model, schema_editor, using, **kwargs)

    def deconstruct(self) -> Any:
        """For migrations."""
        path, args, options = super().deconstruct()
        return path, args, {**options, "rows": self.rows}
