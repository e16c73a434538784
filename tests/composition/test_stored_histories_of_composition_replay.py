"""Histories of steps elsewhere, futures, children and maps replay for ever. A file here is never written anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from django_durable import Context, workflow
from django_durable.authoring.workflow import Workflow
from django_durable.testing import assert_replays
from tests.composition import recorded_composition

FOLDER = Path(__file__).parent / "histories"
KINDS = {
    "elsewhere": ["step", "step", "step"],
    "futures": ["step", "child", "step", "step", "gather", "gather", "gather", "any"],
    "children": ["child", "child", "step"],
    "maps": ["map", "step", "step", "step", "map", "child", "map", "map", "step", "child", "step", "step"],
}
PENDING = {"status": "pending", "output": None, "error": None, "finished_at": None}


def stored(name: str) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return history


@pytest.mark.parametrize("name", sorted(KINDS))
def test_it_replays_at_every_length_and_while_its_last_entry_is_under_way(name: str) -> None:
    flow: Workflow[..., Any] = getattr(recorded_composition, name)
    start, *entries = stored(name)
    assert [entry["kind"] for entry in entries] == KINDS[name]
    for length in range(len(entries) + 1):
        assert_replays(flow, [start, *entries[:length]])
    for length, entry in enumerate(entries):
        assert_replays(flow, [start, *entries[:length], {**entry, **PENDING}])


@workflow("recorded.of_yet_another_kind")
def other(ctx: Context) -> None:
    ctx.sleep(1)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_other_code_does_not(name: str) -> None:
    with pytest.raises(AssertionError, match=r"position 0: the history has"):
        assert_replays(other, stored(name))


@workflow("recorded.maps_another_step")
def maps_another_step(ctx: Context) -> None:
    ctx.map(recorded_composition.light, [1, 2, 3])


@workflow("recorded.another_child")
def another_child(ctx: Context) -> None:
    ctx.child(recorded_composition.maps)


@pytest.mark.parametrize(("flow", "name"), [(maps_another_step, "maps"), (another_child, "children")])
def test_another_target_is_another_operation(flow: Workflow[..., Any], name: str) -> None:
    with pytest.raises(AssertionError, match=r"position 0: the history has"):
        assert_replays(flow, stored(name))
