"""Histories that an earlier version of this package wrote replay with today's. A file here is never written anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from django_durable import Context, workflow
from django_durable.authoring.workflow import Workflow
from django_durable.testing import assert_replays
from tests.composition import recorded_versions

FOLDER = Path(__file__).parent / "histories"
KINDS = {
    "patched": ["patch", "step", "step", "patch"],
    "spend": ["spend", "spend", "step", "spend", "spend"],
    "continue_as_new": ["tags", "step", "continue"],
    "fork": ["derived", "derived", "step", "derived", "step"],
}


def stored(name: str) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return history


@pytest.mark.parametrize("name", sorted(KINDS))
def test_it_replays_at_every_length(name: str) -> None:
    flow: Workflow[..., Any] = getattr(recorded_versions, name)
    start, *entries = stored(name)
    assert [entry["kind"] for entry in entries] == KINDS[name]
    for length in range(len(entries) + 1):
        assert_replays(flow, [start, *entries[:length]])


@workflow("recorded.of_another_kind")
def other(ctx: Context, number: int = 1) -> None:
    ctx.sleep(number)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_other_code_does_not(name: str) -> None:
    with pytest.raises(AssertionError, match=r"position [01]: the history has"):
        assert_replays(other, stored(name))
