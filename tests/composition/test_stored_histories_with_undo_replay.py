"""Histories written by an earlier version of this code: what replays today has to replay tomorrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from django_durable import Context, StepFailed, step, workflow
from django_durable.authoring.workflow import Workflow
from django_durable.testing import DurableKit, assert_replays

pytest_plugins = ["django_durable.testing.plugin"]

FOLDER = Path(__file__).parent / "histories"


@step("histories.act")
def act(what: str) -> str:
    if what == "refused":
        raise ValueError("no")
    return what


@workflow("histories.undo")
def undo(ctx: Context, end: str) -> list[Any]:
    """A block that ends, one that is undone with a failure, a discard, and undo steps of the whole run."""
    seen: list[Any] = []
    ctx.compensate(act, "whole")
    with ctx.saga():
        ctx.compensate(act, "dropped")
        seen.append(ctx.step(act, "first"))
    try:
        with ctx.saga():
            ctx.compensate(act, "refused")
            ctx.compensate(act, "block")
            ctx.step(act, "refused")
    except StepFailed as error:
        seen.append(list(error.__notes__))
    ctx.compensate(act, "discarded")
    if end == "completed":
        ctx.discard_compensations()
    elif end == "failed":
        ctx.step(act, "refused")
    else:
        ctx.wait_for_signal("go")
    return seen


ENDS = ["completed", "failed", "cancelled"]


def stored(end: str) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = json.loads((FOLDER / f"undo_{end}.json").read_text())
    return history


@pytest.mark.parametrize("end", ENDS)
def test_a_stored_history_replays(end: str) -> None:
    assert_replays(undo, stored(end))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("length", range(1, 16))
def test_every_prefix_of_a_stored_history_replays(end: str, length: int) -> None:
    assert_replays(undo, stored(end)[:length])


@pytest.mark.django_db
@pytest.mark.parametrize("end", ENDS)
def test_a_history_of_today_is_the_stored_one(durable: DurableKit, end: str) -> None:
    execution = durable.run(undo, end)
    if end == "cancelled":
        execution.cancel()
        durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == end
    assert [_shape(entry) for entry in durable.export_history(execution)] == [_shape(e) for e in stored(end)]


def _shape(entry: dict[str, Any]) -> dict[str, Any]:
    """What does not differ from run to run."""
    return {name: entry.get(name) for name in ("position", "kind", "name", "status", "attempts", "output")}


def _without_registration() -> Workflow[..., Any]:
    @workflow("histories.undo_without", version="1")
    def changed(ctx: Context, end: str) -> None:
        with ctx.saga():
            ctx.step(act, "first")

    return changed


def _other_ending() -> Workflow[..., Any]:
    @workflow("histories.undo_otherwise", version="1")
    def changed(ctx: Context, end: str) -> None:
        ctx.compensate(act, "whole")
        with ctx.saga():
            ctx.compensate(act, "dropped")
            ctx.step(act, "first")
            raise ValueError("the block ended well at its time")

    return changed


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (_without_registration, "position 0: the history has compensate 'histories.act', the code asks for step"),
        (_other_ending, "position 3: the history has saga 'ended', the code asks for saga 'undone'"),
    ],
)
def test_code_that_registers_or_ends_otherwise_does_not_replay(make: Any, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        assert_replays(make(), stored("completed"))
