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


def behind_marker(history: Mapping[int, Record], position: int, change_id: str) -> int:
    """The position behind this change's marker, where only markers stand before it; else the position as it is."""
    end = past_markers(history, position)
    met = (number for number in range(position, end) if history[number].name == change_id)
    return next(met, position - 1) + 1


def is_marked(history: Mapping[int, Record], change_id: str) -> bool:
    """Whether this run met the change before anything was recorded behind it."""
    return any(record.kind == MARKER and record.name == change_id for record in history.values())
