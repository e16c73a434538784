"""An operation that refuses its arguments takes no position: a body that catches that goes on, at every replay too."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from django_durable import Context, Retry, step, workflow
from django_durable.testing import DurableKit

pytest_plugins = ["django_durable.testing.plugin"]


class Amount(IntEnum):
    """An int that is stored as none; in no annotation, so unknown to the registry."""

    ONE = 1


class Word(StrEnum):
    """The same of a str."""

    ONE = "one"


@step
def note(word: Any) -> Any:
    return word


@step(queue="away")
def note_away(word: Any) -> Any:
    return word


@workflow("composition.refused_child")
def child(ctx: Context, word: Any) -> Any:
    return word


REFUSED: dict[str, Callable[[Context], Any]] = {
    "step": lambda ctx: ctx.step(note, object()),
    "step elsewhere": lambda ctx: ctx.step(note_away, object()),
    "step elsewhere with errors of this call": lambda ctx: ctx.step(
        note_away.using(retry=Retry(retry_on=(KeyError,))), 1
    ),
    "submit": lambda ctx: ctx.submit(note, object()),
    "submit of a child": lambda ctx: ctx.submit(child, object()),
    "child": lambda ctx: ctx.child(child, object()),
    "child without arguments": lambda ctx: ctx.child(child),  # type: ignore[call-arg]
    "child of another tenant": lambda ctx: ctx.child(child.using(tenant="other"), 1),
    "map": lambda ctx: ctx.map(note, [1, object()]),
    "map of children": lambda ctx: ctx.map(child, [1, object()]),
    "map of too many at a time": lambda ctx: ctx.map(note, [1], concurrency=2**40),
    "map_batch": lambda ctx: ctx.map_batch(note, [1, object()]),
    "map_batch of too many": lambda ctx: ctx.map_batch(note, [1], tolerated_failures=2**40),
    "compensate": lambda ctx: ctx.compensate(note, object()),
    "spend": lambda ctx: ctx.spend("words", Amount.ONE),
    "set_value": lambda ctx: ctx.set_value("key", object()),
    "set_tags": lambda ctx: ctx.set_tags(word=Word.ONE),
    "approval": lambda ctx: ctx.wait_for_approval("ok", data=object()),
    "event": lambda ctx: ctx.wait_for_event("news", {"word": object()}),
    "sleep": lambda ctx: ctx.sleep(-1),
    "signal": lambda ctx: ctx.wait_for_signal("go", timeout=-1),
    "callback": lambda ctx: ctx.create_callback("x" * 1000),
    "continue": lambda ctx: ctx.continue_as_new(object()),
}


@workflow("composition.refused", budget={"words": 5})
def refused(ctx: Context, what: str) -> list[Any]:
    told = []
    for word in ("one", "two"):
        try:
            REFUSED[what](ctx)
        except (TypeError, ValueError) as error:
            told.append(type(error).__name__)
        told.append(ctx.step(note, word))
        told.append(ctx.step(note_away, word))
        told.append(ctx.map(note, [word]))
        ctx.wait_for_signal("go")
    return told


@pytest.mark.parametrize("what", REFUSED)
def test_a_body_that_catches_it_goes_on_at_every_replay(durable: DurableKit, what: str) -> None:
    execution = durable.run(refused, what)
    for _ in range(2):
        execution.signal("go")
        durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "completed", execution.error
    assert execution.output[1:4] == ["one", "one", ["one"]]
    assert execution.output[5:] == ["two", "two", ["two"]]
    kinds = [entry["kind"] for entry in execution.history()]
    assert [kind for kind in kinds if kind not in ("map",)].count("signal") == 2
    assert sorted({entry["position"] for entry in execution.history()}) == list(range(8))
    durable.assert_replays(refused, durable.export_history(execution))
