"""tagged: executions by a tag as people write it, ``name=value``."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.db.models.fields.json import KeyTransform

from django_durable.models import ExecutionQuerySet

__all__ = ["readings", "tagged"]


def readings(text: str) -> list[Any]:
    """What a text may stand for: ``5`` the text or the number, ``true`` the text or the bool."""
    if text in ("true", "false"):
        return [text, text == "true"]
    try:
        return [text, int(text)]
    except ValueError:
        return [text]


def tagged(rows: ExecutionQuerySet, alias: str, name: str, values: list[Any]) -> ExecutionQuerySet:
    """The rows whose tag has one of these values; ``alias`` is a name that the query does not have yet."""
    matches = Q()
    for value in values:
        matches |= Q((alias, value))
    # By the expression, not by a keyword: a name with two underscores would become another lookup.
    return rows.alias(**{alias: KeyTransform(name, "tags")}).filter(matches)
