"""Markers: where a run first met a change of its code. The code may stop asking for one at any time."""

from __future__ import annotations

from collections.abc import Mapping

from django_durable.engine.journal import Record

MARKER = "patch"


def past_markers(history: Mapping[int, Record], position: int) -> int:
    """The next position that the code has to ask for: a marker that it does not ask for is passed over."""
    while (record := history.get(position)) is not None and record.kind == MARKER:
        position += 1
    return position


def is_marked(history: Mapping[int, Record], change_id: str) -> bool:
    """Whether this run met the change before anything was recorded behind it."""
    return any(record.kind == MARKER and record.name == change_id for record in history.values())
