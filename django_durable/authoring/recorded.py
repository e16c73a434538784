"""A recorded history outside the database: exported for a replay, and read back by it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django_durable.engine.journal import Record
from django_durable.models import Checkpoint, Execution
from django_durable.models.checkpoint import UNDO, WHOLE
from django_durable.payloads import encode, to_tagged

FORMAT = 1
TAGGED = "tagged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadHistory:
    """What a replay needs: how the run was started, and its records by position."""

    start: Mapping[str, Any]
    encoded_input: str
    budget: str
    records: list[Record]


def export_history(execution: Execution[Any]) -> list[dict[str, Any]]:
    """The execution's history as JSON-able data, to be stored in a file and replayed by a test.

    A ``start`` entry, then what ``execution.history()`` gives, times as ISO 8601 text and values with their type
    tags. It holds the run's inputs, results, error texts and its seed (what ``ctx.random()`` and ``ctx.uuid()``
    derive from): keep it as you keep that data.
    """
    start = {
        "kind": "start",
        "format": FORMAT,
        "values": TAGGED,
        "workflow": execution.workflow,
        "version": execution.version,
        "input": to_tagged(execution.encoded_input),
        "id": str(execution.pk),
        "key": execution.key,
        "run": execution.run,
        "tenant": execution.tenant,
        "seed": execution.seed,
        "scheduled_for": _text(execution.scheduled_for),
        "budget": to_tagged(execution.budget) if execution.budget else None,
    }
    rows = Checkpoint.objects.using(execution.using).filter(execution_id=execution.pk)
    return [start, *(_entry(row) for row in rows.order_by("position", "item"))]


def _entry(row: Checkpoint) -> dict[str, Any]:
    return {
        "position": row.position,
        "kind": row.kind,
        "name": row.name,
        "status": row.status,
        "attempts": row.attempt,
        "started_at": _text(row.started_at),
        "finished_at": _text(row.finished_at),
        "output": None if row.encoded_output is None else to_tagged(row.encoded_output),
        "error": None if row.encoded_error is None else to_tagged(row.encoded_error),
    }


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def read_history(history: Sequence[Mapping[str, Any]]) -> ReadHistory:
    """A list that ``export_history`` made, also after a trip through JSON, or a start entry and ``history()``.

    Raises ``ValueError`` for a list that does not begin with a start entry of a format known here.
    """
    start, *entries = history or [{}]
    if start.get("kind") != "start":
        raise ValueError('a history begins with {"kind": "start", "input": …, "version": …, "format": 1}')
    if start.get("format") != FORMAT:
        raise ValueError(f"format {start.get('format')!r} of a history is not known here; this code reads {FORMAT}")
    tagged = start.get("values") == TAGGED
    records: list[Record] = []
    last: dict[int, int] = {}
    for entry in entries:
        position = entry["position"]
        # Items of a map share their position, and so does an undo step its registration's; the whole comes first.
        item = UNDO if entry["kind"] == "undo" else last.get(position, WHOLE - 1) + 1
        if item != UNDO:
            last[position] = item
        records.append(_record(entry, item, tagged))
    return ReadHistory(
        start=start,
        encoded_input=_stored(start.get("input") or {}, tagged, "the input"),
        budget=_stored(start["budget"], tagged, "the budget") if start.get("budget") else "",
        records=records,
    )


def _record(entry: Mapping[str, Any], item: int, tagged: bool) -> Record:
    position, status = entry["position"], entry.get("status", "completed")
    attempts = entry.get("attempts") or 0
    output, error = entry.get("output"), entry.get("error")
    return Record(
        position=position,
        item=item,
        kind=entry["kind"],
        name=entry.get("name") or "",
        status=status,
        attempt=attempts,
        begun=attempts,
        lease_token=None,
        encoded_output=_stored(output, tagged, f"the output at position {position}"),
        encoded_error=None if error is None else _stored(error, tagged, f"the error at position {position}"),
        wake_at=None,
        started_at=None,
        attempts_log="",
    )


def _stored(value: Any, tagged: bool, where: str) -> str:
    return json.dumps(value) if tagged else encode(value, where=where)


def id_of(start: Mapping[str, Any]) -> UUID:
    """The run's id, where the history names it."""
    return UUID(start["id"]) if start.get("id") else UUID(int=0)
