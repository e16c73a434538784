"""history_page: the positions of one execution, in order, some at a time."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from rest_framework.request import Request

from django_durable.models import Checkpoint, Execution
from django_durable.models.checkpoint import WHOLE
from django_durable.operators.values import Values
from django_durable.rest.paging import CURSOR, envelope, page_size, wrong_cursor
from django_durable.rest.representations import Checkpoint as Shown

__all__ = ["history_page"]

COLUMNS = (
    "position",
    "item",
    "kind",
    "name",
    "status",
    "attempt",
    "started_at",
    "finished_at",
    "encoded_output",
    "encoded_error",
)
LARGEST = 2_147_483_647


def history_page(request: Request, execution: Execution[Any], values: Values) -> dict[str, Any]:
    """One page; one query."""
    size = page_size(request)
    rows = Checkpoint.objects.using(execution.using).filter(execution_id=execution.pk)
    if text := request.query_params.get(CURSOR):
        position, item = read_place(text)
        rows = rows.filter(Q(position__gt=position) | Q(position=position, item__gt=item))
    found = list(rows.order_by("position", "item").values(*COLUMNS)[: size + 1])
    page = found[:size]
    following = f"{page[-1]['position']}.{page[-1]['item']}" if len(found) > size else None
    return envelope(request, Shown([read(row, values) for row in page], many=True).data, following)


def read_place(text: str) -> tuple[int, int]:
    """A position and an item. Raises ``BadInput``."""
    parts = text.split(".")
    try:
        position, item = (int(part) for part in parts)
    except ValueError:
        raise wrong_cursor() from None
    if not all(-LARGEST <= number <= LARGEST for number in (position, item)):
        raise wrong_cursor()
    return position, item


def read(row: dict[str, Any], values: Values) -> dict[str, Any]:
    """A checkpoint as it goes out: the keys of ``Execution.history()``, and the item of a map."""
    return {
        **{name: row[name] for name in ("position", "kind", "name", "status", "started_at", "finished_at")},
        "item": None if row["item"] == WHOLE else row["item"],
        "attempts": row["attempt"],
        "output": values.value(row["encoded_output"]),
        "error": values.error(row["encoded_error"]),
    }
