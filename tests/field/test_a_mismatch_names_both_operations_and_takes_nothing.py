"""Field report B28: changed code meets a history of another code.

The variants of steps and sleeps are in ``tests/db/test_code_that_does_not_match_its_history_is_blocked.py``. Here:
every kind of operation with a name of its own, what the operator reads, and that nothing is consumed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_durable import Context, Execution, step, workflow
from django_durable.models import Checkpoint, Message
from tests.driving import drain, make_due
from tests.field.rig.yard import Yard

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def a() -> str:
    ran.append("a")
    return "a"


@step
def b() -> str:
    ran.append("b")
    return "b"


OPERATIONS: dict[str, Callable[[Context], Any]] = {
    "step a": lambda ctx: ctx.step(a),
    "step b": lambda ctx: ctx.step(b),
    "sleep": lambda ctx: ctx.sleep(0),
    "signal go": lambda ctx: ctx.wait_for_signal("go"),
    "signal stop": lambda ctx: ctx.wait_for_signal("stop"),
    "breakpoint one": lambda ctx: ctx.breakpoint("one"),
    "breakpoint two": lambda ctx: ctx.breakpoint("two"),
    "value one": lambda ctx: ctx.set_value("one", 1),
    "value two": lambda ctx: ctx.set_value("two", 1),
    "tags": lambda ctx: ctx.set_tags(one=1),
    "now": lambda ctx: ctx.now(),
    "uuid": lambda ctx: ctx.uuid(),
}
UNWRITTEN = ("uuid",)
"""Values derived from the seed leave no record: only what follows them can tell."""

deployed = "step a"


@workflow
def changing(ctx: Context) -> str:
    OPERATIONS[deployed](ctx)
    ctx.sleep(600)
    ctx.step(b)
    return "end"


def shown(operation: str) -> str:
    """As an operator reads it."""
    kind, _, name = operation.partition(" ")
    return f"{kind} {'tests.field.' + __name__.rpartition('.')[2] + '.' + name if kind == 'step' else name!r}"


def pairs() -> list[tuple[str, str]]:
    """Each operation against the other one of its kind, and against some of another kind."""
    chosen = ("step b", "sleep", "signal stop", "uuid")
    return [
        (old, new)
        for old in OPERATIONS
        for new in OPERATIONS
        if old != new and (new in chosen or old.partition(" ")[0] == new.partition(" ")[0])
    ]


@pytest.mark.django_db
@pytest.mark.parametrize(("old", "new"), pairs())
def test_another_operation_at_the_position_stops_before_any_effect(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.deployed", old)
    execution = changing.start()
    for name in ("go", "stop", "stop"):
        execution.signal(name)
    drain()
    if old.startswith("breakpoint"):
        execution.resume(actor="ann")
        drain()
    before = _state(execution)
    assert before[0] == "waiting"

    monkeypatch.setattr(f"{__name__}.deployed", new)
    make_due()
    effects = list(ran)
    drain()
    blocked = Execution.objects.locate(execution.pk)
    assert blocked.status == "blocked"
    assert ran == effects
    assert _state(execution)[1:] == before[1:]
    assert blocked.error is not None
    assert blocked.error["type"] == "django_durable.errors.NonDeterminismError"
    message = blocked.error["message"]
    assert "position 0" in message or old in UNWRITTEN or new in UNWRITTEN
    for operation in (old, new):
        kind, _, name = operation.partition(" ")
        assert kind in message or operation in UNWRITTEN
        assert name in message
    assert drain() == 0

    monkeypatch.setattr(f"{__name__}.deployed", old)
    blocked.retry(actor="ann")
    drain()
    assert Execution.objects.locate(execution.pk).output == "end"
    assert ran == [*effects, "b"]


def _state(execution: Execution[Any]) -> tuple[Any, ...]:
    """The status, and all that a replay could have consumed or written."""
    return (
        Execution.objects.locate(execution.pk).status,
        list(Checkpoint.objects.order_by("position").values_list("position", "kind", "name", "status", "attempt")),
        list(Message.objects.order_by("id").values_list("channel", "consumed_by")),
    )


def test_workers_of_changed_code_stop_it_and_the_old_code_ends_it(yard: Yard) -> None:
    old = yard.worker()
    execution = yard.start("deployed", 1.0)
    yard.wait_for_status(execution, "waiting")
    old.terminate()
    old.wait()
    new = yard.worker(VARIANT="renamed")
    blocked = yard.wait_for_status(execution, "blocked")
    assert blocked.error is not None
    assert "changed-b" in blocked.error["message"]
    assert "original-b" in blocked.error["message"]
    assert yard.begun() == ["a", "b"]
    other = yard.start("three", "x")
    yard.wait_for_status(other, "completed")
    assert yard.reload(execution).status == "blocked"
    new.terminate()
    new.wait()
    yard.reload(execution).retry(actor="ann")
    yard.worker()
    yard.wait_for_status(execution, "completed")
    assert [line for line in yard.begun() if not line.startswith("x")] == ["a", "b", "c"]
