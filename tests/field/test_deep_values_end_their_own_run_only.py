"""Field report B82: deep nesting and recursion end the worker, and the next one after it.

``tests/unit/test_value_nesting_never_crashes_the_interpreter.py`` has the encoding; here are the places where such a
value can stand, written past the engine too, and user code that recurses.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
from django.db.models import QuerySet

from django_durable import Context, Execution, UnserializableValue, step, workflow
from django_durable.models import Checkpoint, Message
from tests.calling import durable
from tests.driving import drain

pytestmark = pytest.mark.django_db

DEPTHS = [500, 100_000]


def nested(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = [value]
    return value


def stored(depth: int) -> str:
    return "[" * depth + "]" * depth


@step
def returns_nested(depth: int) -> Any:
    return nested(depth)


@step
def recurses() -> Any:
    return recurses.func()


def forever() -> Any:
    return forever()


@workflow
def steps(ctx: Context, depth: int) -> str:
    ctx.step(returns_nested, depth)
    return "never"


@workflow
def returns(ctx: Context, depth: int) -> Any:
    return nested(depth)


@workflow
def publishes(ctx: Context, depth: int) -> None:
    ctx.set_value("deep", nested(depth))


@workflow
def waits(ctx: Context, value: Any = None) -> Any:
    ctx.set_value("before", 1)
    got = ctx.wait_for_signal("go")
    ctx.wait_for_signal("more")
    return got


@workflow
def recurses_in_step(ctx: Context) -> None:
    ctx.step(recurses)


@workflow
def recurses_in_body(ctx: Context) -> None:
    forever()


def ended(execution: Execution[Any]) -> tuple[str, str]:
    row = Execution.objects.locate(execution.pk)
    assert row.error is not None
    return row.status, row.error["type"].rpartition(".")[2]


def healthy() -> None:
    """Whoever ran the others runs this, and pages about them can be shown."""
    execution = waits.start()
    execution.signal("go", 1)
    execution.signal("more")
    drain()
    assert Execution.objects.locate(execution.pk).output == 1
    for row in Execution.objects.all():
        assert durable("show", row.pk, "--payloads").code == 0
        assert durable("history", row.pk, "--json").code == 0


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_call_refuses_it_and_stores_nothing(depth: int) -> None:
    with pytest.raises(UnserializableValue, match="200 levels"):
        waits.start(nested(depth))
    execution = waits.start()
    with pytest.raises(UnserializableValue, match="200 levels"):
        execution.signal("go", nested(depth))
    with pytest.raises(UnserializableValue, match="200 levels"):
        waits.using(key="k").signal_or_start("go", nested(depth))
    assert durable("start", waits.name, "--input", f'{{"value": {stored(depth)}}}').code == 2
    assert Execution.objects.count() == 1
    assert not Message.objects.exists()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("flow", [steps, returns, publishes], ids=lambda flow: flow.func.__name__)
def test_a_result_fails_its_own_run(flow: Any, depth: int) -> None:
    execution = flow.start(depth)
    drain()
    assert ended(execution) == ("failed", "UnserializableValue")
    assert not Checkpoint.objects.filter(status="completed").exists()
    healthy()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("where", ["input", "checkpoint", "message"])
def test_what_was_stored_past_the_engine_fails_its_own_run(where: str, depth: int) -> None:
    execution = waits.start()
    if where == "input":
        QuerySet(Execution).filter(pk=execution.pk).update(encoded_input=f'{{"value": {stored(depth)}}}')
    elif where == "message":
        execution.signal("go")
        QuerySet(Message).update(payload=stored(depth))
    else:
        execution.signal("go", 1)
        drain()
        QuerySet(Checkpoint).filter(kind="signal", name="go").update(encoded_output=stored(depth))
        execution.signal("more")
    drain()
    assert ended(execution) == ("failed", "UndecodableValue")
    healthy()


def test_what_a_finished_run_holds_can_still_be_shown() -> None:
    execution = waits.start()
    for name in ("go", "more"):
        execution.signal(name)
    drain()
    for column in ("encoded_output", "encoded_error"):
        QuerySet(Execution).filter(pk=execution.pk).update(**{column: stored(100_000)})
        assert durable("show", execution.pk, "--payloads").code == 0
        assert durable("list", "--json").code == 0


@pytest.mark.parametrize("flow", [recurses_in_step, recurses_in_body], ids=lambda flow: flow.func.__name__)
def test_endless_recursion_in_user_code_is_an_ordinary_failure(flow: Any) -> None:
    limit = sys.getrecursionlimit()
    execution = flow.start()
    drain()
    assert ended(execution) == ("failed", "RecursionError")
    assert sys.getrecursionlimit() == limit
    healthy()
