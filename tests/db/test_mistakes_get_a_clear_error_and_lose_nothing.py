"""An ordinary user's mistakes: each is refused where it is made, with a text that says what to do."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from django_durable import (
    Context,
    Execution,
    ExecutionClosed,
    ExecutionConflict,
    NotInStep,
    Ref,
    UnknownWorkflow,
    UnserializableValue,
    current_step,
    step,
    workflow,
)
from django_durable.authoring.registry import find_workflow
from django_durable.models import Checkpoint
from tests.driving import drain

pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def effect(value: Any = None) -> Any:
    ran.append("effect")
    return value


class Custom:
    pass


def body_of(name: str) -> Callable[..., Any]:
    return BODIES[name]


@workflow
def mistaken(ctx: Context, name: str) -> Any:
    return body_of(name)(ctx)


def run(name: str) -> Execution[Any]:
    execution = mistaken.start(name)
    drain()
    return Execution.objects.locate(execution.pk)


def returns_custom_set() -> set[Custom]:
    ran.append("body")
    return {Custom()}


def returns_five_megabytes() -> str:
    ran.append("body")
    return "x" * 5_000_000


def loads_a_ref(ref: Ref[Any]) -> str:
    return str(ref.load())


BODIES: dict[str, Callable[[Context], Any]] = {
    "lambda": lambda ctx: ctx.step(lambda: 1),
    "negative": lambda ctx: ctx.sleep(-1),
    "nan": lambda ctx: ctx.sleep(float("nan")),
    "bool": lambda ctx: ctx.sleep(True),
    "naive": lambda ctx: ctx.sleep_until(dt.datetime(2030, 1, 1)),
    "naive wait": lambda ctx: ctx.wait_for_signal("x", until=dt.datetime(2030, 1, 1)),
    "custom set": lambda ctx: ctx.step(returns_custom_set),
    "5 MB": lambda ctx: ctx.step(returns_five_megabytes),
    "custom argument": lambda ctx: ctx.step(effect, Custom()),
    "forgotten ctx.step": lambda ctx: effect(1),
    "query": lambda ctx: get_user_model().objects.count(),
    "start": lambda ctx: mistaken.start("x"),
    "thread": lambda ctx: _in_thread(ctx),
    "returns generator": lambda ctx: (n for n in range(3)),
}


def _in_thread(ctx: Context) -> None:
    thread = threading.Thread(target=lambda: contextlib.suppress(Exception).__enter__() or _swallow(ctx))
    thread.start()
    thread.join()
    ctx.step(effect)


def _swallow(ctx: Context) -> None:
    with contextlib.suppress(Exception):
        ctx.step(effect)


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("lambda", "builtins.TypeError", "name="),
        ("negative", "builtins.ValueError", "duration"),
        ("nan", "builtins.ValueError", "duration"),
        ("bool", "builtins.TypeError", "duration"),
        ("naive", "builtins.ValueError", "moment"),
        ("naive wait", "builtins.ValueError", "until"),
        ("custom set", "django_durable.errors.UnserializableValue", "returns_custom_set"),
        ("5 MB", "django_durable.errors.PayloadTooLarge", "5,000,002 bytes"),
        ("custom argument", "django_durable.errors.UnserializableValue", "effect"),
        ("returns generator", "builtins.TypeError", "generator"),
    ],
)
def test_a_mistake_in_a_body_fails_the_run_with_a_text_that_names_it(name: str, error: str, text: str) -> None:
    execution = run(name)
    assert execution.status == "failed"
    assert execution.error is not None
    assert execution.error["type"] == error
    assert text in execution.error["message"]
    assert "effect" not in ran


def test_a_refused_result_is_not_retried() -> None:
    run("custom set")
    assert ran == ["body"]


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("forgotten ctx.step", "DirectCall", "ctx.step(effect"),
        ("query", "DirectCall", "put it into a step"),
        ("start", "DirectCall", "ctx.child"),
        ("thread", "NonDeterminismError", "thread"),
    ],
)
def test_a_call_past_the_context_blocks_the_run_with_its_line(name: str, error: str, text: str) -> None:
    execution = run(name)
    assert execution.status == "blocked"
    assert execution.error is not None
    assert execution.error["type"] == f"django_durable.errors.{error}"
    assert text in execution.error["message"]
    if error == "DirectCall":
        assert "test_mistakes_get_a_clear_error" in execution.error["message"]
    assert ran == []
    assert not Checkpoint.objects.exists()


def test_declarations_refuse_what_is_no_plain_function() -> None:
    async def coroutine() -> None: ...

    def generator() -> Any:
        yield 1

    async def async_generator() -> Any:
        yield 1

    class Callables:
        def method(self) -> None: ...

        def __call__(self) -> None: ...

        @staticmethod
        def static() -> None: ...

    refused: list[Any] = [
        coroutine,
        generator,
        async_generator,
        Callables.method,
        Callables().method,
        Callables(),
        Callables.__dict__["static"],
        functools.partial(effect.func),
        lambda: 1,
        42,
    ]
    for one in refused:
        with pytest.raises(TypeError):
            step(one)
    for one in refused[:8]:
        with pytest.raises(TypeError):
            workflow(one)
    with pytest.raises(TypeError, match="context"):
        workflow(named_without_context)
    with pytest.raises(ValueError, match="version"):
        workflow(version="one")


def named_without_context() -> None: ...


def test_two_definitions_of_one_name_are_refused() -> None:
    step(named_without_context, name="shared name")
    with pytest.raises(ValueError, match="shared name"):
        step(_in_thread, name="shared name")


def test_a_start_refuses_what_cannot_be_stored_and_stores_nothing() -> None:
    user = get_user_model().objects.create_user("u")
    with pytest.raises(UnserializableValue, match="Ref"):
        mistaken.start(user)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="255"):
        mistaken.using(key="k" * 300)
    with pytest.raises(ValueError, match="key"):
        mistaken.using(key="nul\x00")
    with pytest.raises(ValueError, match="run_after"):
        mistaken.using(run_after=dt.datetime(2030, 1, 1))
    with pytest.raises(ValueError, match="run_after"):
        mistaken.using(run_after=-1)
    with pytest.raises(ValueError, match="priority"):
        mistaken.using(priority=9)
    with pytest.raises(TypeError, match="on_conflit"):
        mistaken.using(on_conflit="error")
    with pytest.raises(TypeError, match="tag"):
        mistaken.using(tags={"a": [1]})
    assert not Execution.objects.exists()


def test_a_second_start_with_other_input_leaves_the_first_byte_for_byte() -> None:
    first = mistaken.using(key="k").start("negative")
    before = Execution.objects.filter(pk=first.pk).values().get()
    with pytest.raises(ExecutionConflict, match="another input"):
        mistaken.using(key="k").start("nan")
    assert Execution.objects.filter(pk=first.pk).values().get() == before


def test_an_unknown_workflow_is_named() -> None:
    with pytest.raises(UnknownWorkflow, match="no_such"):
        find_workflow("shop.no_such")
    with pytest.raises(UnknownWorkflow, match="known versions: 1"):
        find_workflow(mistaken.name, "7")


def test_a_signal_to_a_finished_execution_is_refused() -> None:
    execution = run("returns generator")
    with pytest.raises(ExecutionClosed, match="failed"):
        execution.signal("late")


@workflow
def by_ref(ctx: Context, user: Ref[Any]) -> str:
    return ctx.step(loads_a_ref, user)


def test_a_ref_to_a_deleted_row_fails_the_step_and_says_which() -> None:
    user = get_user_model().objects.create_user("u")
    execution = by_ref.start(Ref(user))
    pk = user.pk
    user.delete()
    drain()
    failed = Execution.objects.locate(execution.pk)
    assert failed.status == "failed"
    assert failed.error is not None
    assert "DoesNotExist" in failed.error["type"]
    assert str(pk) in failed.error["message"]


def test_current_step_outside_a_step_is_refused() -> None:
    with pytest.raises(NotInStep):
        current_step()


def test_a_step_and_a_workflow_called_outside_are_their_functions() -> None:
    assert effect(3) == 3
    assert effect.func(3) == 3


@pytest.mark.parametrize(
    "write",
    [
        lambda e: e.save(),
        lambda e: e.delete(),
        lambda e: Execution.objects.create(workflow="x"),
        lambda e: Execution.objects.update(status="x"),
        lambda e: Execution.objects.all().delete(),
        lambda e: Execution.objects.bulk_create([]),
        lambda e: Execution.objects.get_or_create(workflow="nobody"),
    ],
)
def test_writing_past_the_engine_is_a_type_error_that_names_the_verb(write: Callable[[Any], Any]) -> None:
    execution = mistaken.start("negative")
    with pytest.raises(TypeError, match=r"start|verbs|prune"):
        write(execution)
