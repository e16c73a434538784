"""Histories that an earlier version of this package wrote replay with today's. A file here is never written anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from django_durable import Context, workflow
from django_durable.authoring.workflow import Workflow
from django_durable.testing import assert_replays
from tests.composition import recorded_elsewhere

FOLDER = Path(__file__).parent / "histories"
FLOWS = {
    "step_elsewhere": recorded_elsewhere.step_elsewhere,
    "gather": recorded_elsewhere.gather,
    "map": recorded_elsewhere.mapped,
    "map_batch": recorded_elsewhere.map_batch,
    "child": recorded_elsewhere.child,
}
KINDS = {
    "step_elsewhere": ["step", "step"],
    "gather": ["step", "child", "step", "gather"],
    "map": ["map", "step", "step", "step", "map", "step", "child"],
    "map_batch": ["map", "step", "step", "step", "step", "step", "step"],
    "child": ["child", "child"],
}


def stored(name: str) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return history


@pytest.mark.parametrize("name", sorted(KINDS))
def test_it_replays_at_every_length(name: str) -> None:
    flow: Workflow[..., Any] = FLOWS[name]
    start, *entries = stored(name)
    assert [entry["kind"] for entry in entries] == KINDS[name]
    for position in range(entries[-1]["position"] + 2):
        # A map's items are recorded together with it.
        assert_replays(flow, [start, *(entry for entry in entries if entry["position"] < position)])


@workflow("recorded.of_other_operations")
def other(ctx: Context) -> None:
    ctx.sleep(1)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_other_code_does_not(name: str) -> None:
    with pytest.raises(AssertionError, match=r"position 0: the history has"):
        assert_replays(other, stored(name))


@workflow("recorded.other_branch")
def other_branch(ctx: Context) -> None:
    """Takes another way where the stored values are another run's."""
    if ctx.map(recorded_elsewhere.tenfold, [3, 1, 2]) == [30, 10, 20]:
        ctx.map([recorded_elsewhere.tenfold.bind(4), recorded_elsewhere.leaf.bind(5)])
    else:
        ctx.sleep(1)


def test_the_results_of_items_are_read_in_their_order() -> None:
    history = stored("map")
    assert_replays(other_branch, history)
    first = next(entry for entry in history[1:] if entry["kind"] == "step")
    first["output"] = 31
    with pytest.raises(AssertionError, match=r"position 1: the history has"):
        assert_replays(other_branch, history)
