"""The table in docs/explanation/architecture.md and the sources that the code allows are the same."""

from __future__ import annotations

import re
from pathlib import Path

from django_durable.engine.transitions import SOURCES
from django_durable.models import Status

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "architecture.md"


def rows() -> dict[str, list[str]]:
    """The table's rows by transition."""
    section = PAGE.read_text().split("## The transition table")[1].split("###")[0]
    cells = [re.split(r"\s*\|\s*", line.strip().strip("|").strip()) for line in section.splitlines() if "|" in line]
    return {cell[0]: cell for cell in cells[2:]}


def test_every_transition_of_the_code_stands_in_the_table_and_the_reverse() -> None:
    assert set(rows()) == set(SOURCES)


def test_the_allowed_sources_are_the_same() -> None:
    for name, cells in rows().items():
        listed = set() if cells[1] == "–" else set(cells[1].split(", "))
        assert listed == set(SOURCES[name]), name


def test_sources_are_statuses_and_each_row_is_complete() -> None:
    statuses = set(Status.values)
    for name, cells in rows().items():
        assert set(SOURCES[name]) <= statuses
        assert len(cells) == 6, name
        assert all(cells), name
