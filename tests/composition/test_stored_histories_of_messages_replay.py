"""Histories that were stored when these operations were made replay today, as a whole and up to any record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from django_durable import Context, workflow
from django_durable.authoring.recorded import export_history
from django_durable.authoring.registry import forget
from django_durable.authoring.workflow import Workflow
from django_durable.events import publish
from django_durable.models import Checkpoint
from django_durable.operators.callback import complete_callback, fail_callback
from django_durable.payloads import decode
from django_durable.testing import DurableKit, assert_replays
from tests.composition import recorded_messages as recorded

pytest_plugins = ["django_durable.testing.plugin"]

FOLDER = Path(__file__).parent / "histories"
FLOWS = {flow.name.partition(".")[2]: flow for flow in (getattr(recorded, name) for name in recorded.__all__)}


def tokens() -> list[str]:
    """Of the callbacks, in the order of their making."""
    made = Checkpoint.objects.filter(kind="callback").order_by("position")
    return [decode(text or "null") for text in made.values_list("encoded_output", flat=True)]


def live(name: str, durable: DurableKit) -> list[dict[str, Any]]:
    """The history of a run of today, through the same events as the stored one."""
    execution = durable.run(FLOWS[name])
    sends: dict[str, list[Callable[[], Any]]] = {
        "updates": [lambda: execution.send_update("add", {"n": 1})],
        "events": [lambda: publish("sold", {"order": 5, "amount": 3})],
        "callbacks": [lambda: (complete_callback(tokens()[0], 7), fail_callback(tokens()[1], "no"))],
        "approvals": [
            lambda: execution.decide("legal", approved=True, actor="ada", reason="fine", data={"x": (1, 2)})
        ],
        "first_of_all": [
            lambda: execution.signal("go", 1),
            lambda: execution.send_update("add", 2),
            lambda: publish("sold", {"order": 5}),
            lambda: complete_callback(tokens()[0], 4),
        ],
    }
    for send in sends[name]:
        send()
        durable.run_until_idle()
    durable.run_until_idle(skip="all")
    execution.refresh_from_db()
    assert execution.status == "completed"
    return export_history(execution)


def outline(history: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What does not change from run to run."""
    names = ("position", "kind", "name", "status")
    return [tuple(entry[name] for name in names) for entry in history[1:]]


@pytest.mark.parametrize("name", sorted(FLOWS))
def test_the_stored_history_replays_whole_and_up_to_any_record(name: str) -> None:
    history = json.loads((FOLDER / f"{name}.json").read_text())
    assert len(history) > 2
    for end in range(1, len(history) + 1):
        assert_replays(FLOWS[name], history[:end])


@pytest.mark.parametrize("name", sorted(FLOWS))
def test_a_run_of_today_writes_what_is_stored(name: str, durable: DurableKit) -> None:
    stored = json.loads((FOLDER / f"{name}.json").read_text())
    assert outline(live(name, durable)) == outline(stored)


OTHERS: dict[str, Callable[[Context], Any]] = {
    "updates": lambda ctx: ctx.wait_for_update("remove"),
    "events": lambda ctx: ctx.wait_for_signal("sold"),
    "callbacks": lambda ctx: ctx.create_callback("other"),
    "approvals": lambda ctx: ctx.wait_for_approval("finance"),
    "first_of_all": lambda ctx: ctx.wait_any("go"),
}


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_another_operation_or_name_is_told_with_its_position(name: str) -> None:
    def changed(ctx: Context) -> Any:
        return OTHERS[name](ctx)

    other: Workflow[[], Any] = workflow(f"histories.changed_{name}")(changed)
    try:
        with pytest.raises(AssertionError, match="position 0: the history has"):
            assert_replays(other, json.loads((FOLDER / f"{name}.json").read_text()))
    finally:
        forget(other)
