"""CheckpointRow: one position of a run on its page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django_durable.admin.columns import moment
from django_durable.admin.paging import Page, Shelf, turn_page
from django_durable.admin.reader import Failure, Reader, Shown
from django_durable.admin.stored import read_stored, read_stored_failure, with_stored
from django_durable.admin.timeline import Span
from django_durable.models import Checkpoint, Execution
from django_durable.models.checkpoint import UNDO, WHOLE

__all__ = ["PAGE", "CheckpointRow", "read_checkpoints"]

PAGE: Final = 200
"""Checkpoints a page."""
COLUMNS: Final = (
    "position",
    "item",
    "kind",
    "name",
    "status",
    "attempt",
    "queue",
    "wake_at",
    "queued_at",
    "started_at",
    "finished_at",
    "attempts_log",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRow:
    """What the page shows of one checkpoint."""

    place: str
    kind: str
    name: str
    status: str
    attempts: int
    queue: str
    wakes: str | None
    started: str | None
    seconds: str
    attempt_errors: list[str]
    output: Shown | None
    failure: Failure | None
    span: Span


def read_checkpoints(execution: Execution[Any], asked: Mapping[str, str], reader: Reader) -> Page[CheckpointRow]:
    """One page of the history, in order: one query. Raises ``WrongCursor``."""
    rows = Checkpoint.objects.using(execution.using).filter(execution_id=execution.pk).only("execution_id", *COLUMNS)
    stored = with_stored(with_stored(rows, "encoded_output"), "encoded_error")
    page = turn_page([Shelf(rows=stored, fields=("position", "item"))], asked, PAGE)
    return Page(rows=[_row(row, reader) for row in page.rows], before=page.before, after=page.after)


def _row(row: Checkpoint, reader: Reader) -> CheckpointRow:
    return CheckpointRow(
        place=_place(row.position, row.item),
        kind=row.kind,
        name=row.name,
        status=row.status,
        attempts=row.attempt,
        queue=row.queue,
        wakes=moment(row.wake_at) if row.status == "pending" else None,
        started=moment(row.started_at),
        seconds=_seconds(row.started_at, row.finished_at),
        attempt_errors=_attempt_errors(row.attempts_log),
        output=read_stored(row, "encoded_output", reader),
        failure=read_stored_failure(row, "encoded_error", reader),
        span=_span(row),
    )


def _span(row: Checkpoint) -> Span:
    return Span(
        place=_place(row.position, row.item),
        kind=row.kind,
        name=row.name,
        status=row.status,
        began=row.started_at or row.queued_at,
        ended=row.finished_at,
        due=row.wake_at,
        failures=_failure_times(row.attempts_log),
        is_undo=row.item == UNDO,
    )


def _place(position: int, item: int) -> str:
    if item == WHOLE:
        return str(position)
    return f"undo.{position}" if item == UNDO else f"{position}.{item}"


def _seconds(started_at: datetime | None, finished_at: datetime | None) -> str:
    if started_at is None or finished_at is None:
        return ""
    return f"{max(0.0, (finished_at - started_at).total_seconds()):.3f}"


def _failure_times(text: str) -> list[datetime]:
    """When attempts failed; empty for a text that is none of ours."""
    try:
        found = [datetime.fromisoformat(one["ended_at"]) for one in json.loads(text or "[]")]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []
    return [at for at in found if at.tzinfo is not None]


def _attempt_errors(text: str) -> list[str]:
    """The types of the errors of attempts that failed; empty for a text that is none of ours."""
    try:
        return [f"{one['attempt']}: {one['type']}" for one in json.loads(text or "[]")]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []
