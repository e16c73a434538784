"""Field report B84: a coroutine or generator where a plain function is expected is never run, and looks done.

``tests/db/test_mistakes_get_a_clear_error_and_lose_nothing.py`` has what a declaration refuses; here is what only
shows when it runs, and what is handed to ``ctx`` undeclared.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from django_durable import Context, Execution, Retry, step, workflow
from django_durable.authoring.registry import find_workflow, forget
from django_durable.models import Checkpoint
from tests.driving import drain, make_due

# ``never awaited`` is a warning, and each warning is an error; where user code has hidden it, it may be heard.
pytestmark = pytest.mark.django_db
NEVER_AWAITED = "ignore:coroutine 'coroutine' was never awaited"

ran: list[str] = []
made: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    ran.clear()
    yield
    while made:
        made.pop().close()
    gc.collect()


def kept(begun: Any) -> Any:
    """Kept until it is closed: dropped anywhere else, Python would warn of it in the middle of something else."""
    made.append(begun)
    return begun


async def coroutine() -> str:
    ran.append("coroutine")
    return "done"


def generator() -> Iterator[str]:
    ran.append("generator")
    yield "done"


async def async_generator() -> AsyncIterator[str]:
    ran.append("async generator")
    yield "done"


class Awaitable:
    def __await__(self) -> Iterator[None]:
        ran.append("awaited")
        yield


MAKERS: dict[str, Any] = {
    "coroutine": coroutine,
    "generator": generator,
    "async generator": async_generator,
    "awaitable": Awaitable,
    "iterator": lambda: iter([1, 2]),
    "map": lambda: map(str, [1, 2]),
    "coroutine in a list": lambda: [1, kept(coroutine())],
    "generator in a dict": lambda: {"a": generator()},
    "function": lambda: coroutine,
}


@step(retry=Retry(max_attempts=3, initial=0))
def makes(what: str) -> Any:
    ran.append("body")
    return MAKERS[what]()


@step(transactional=True)
def makes_in_a_transaction(what: str) -> Any:
    ran.append("body")
    return MAKERS[what]()


@workflow
def stepping(ctx: Context, what: str, transactional: bool) -> Any:
    return ctx.step(makes_in_a_transaction if transactional else makes, what)


@workflow
def returning(ctx: Context, what: str) -> Any:
    return MAKERS[what]()


@workflow
def publishing(ctx: Context, what: str) -> None:
    ctx.set_value("it", MAKERS[what]())


def end_of(execution: Execution[Any]) -> tuple[str, str]:
    """The end of the run: its status and its message."""
    row = Execution.objects.locate(execution.pk)
    assert row.error is not None
    return row.status, row.error["message"]


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("what", MAKERS)
@pytest.mark.filterwarnings(NEVER_AWAITED)
def test_a_step_that_returns_it_has_failed_and_is_not_retried(what: str, transactional: bool) -> None:
    execution = stepping.start(what, transactional)
    drain()
    status, message = end_of(execution)
    assert status == "failed"
    assert "makes" in message
    assert ran == ["body"]
    assert not Checkpoint.objects.filter(status="completed").exists()


@pytest.mark.parametrize("what", MAKERS)
@pytest.mark.filterwarnings(NEVER_AWAITED)
def test_a_workflow_that_returns_it_has_failed(what: str) -> None:
    execution = returning.start(what)
    drain()
    status, message = end_of(execution)
    assert status == "failed"
    assert returning.name in message
    assert Execution.objects.locate(execution.pk).output is None


@pytest.mark.parametrize("what", ["coroutine", "generator", "async generator", "awaitable"])
def test_what_is_returned_alone_is_closed_without_a_warning(what: str) -> None:
    for flow, arguments in ((stepping, (what, False)), (returning, (what,))):
        flow.start(*arguments)
        drain()
        gc.collect()
    assert ran == ["body"]


@pytest.mark.filterwarnings(NEVER_AWAITED)
@pytest.mark.parametrize("what", MAKERS)
def test_a_published_value_is_refused(what: str) -> None:
    execution = publishing.start(what)
    drain()
    assert end_of(execution)[0] == "failed"
    assert not Checkpoint.objects.exists()


class Callables:
    def __call__(self) -> None:
        ran.append("called")

    def method(self) -> None:
        ran.append("called")

    @staticmethod
    def static() -> None:
        ran.append("called")

    @classmethod
    def of_class(cls) -> None:
        ran.append("called")


def plain(text: str) -> str:
    ran.append(text)
    return text


GIVEN: dict[str, Any] = {
    "coroutine function": (coroutine, "coroutine function"),
    "generator function": (generator, "generator function"),
    "async generator function": (async_generator, "generator function"),
    "partial": (functools.partial(plain, "x"), "partial"),
    "instance with __call__": (Callables(), "Callables"),
    "bound method": (Callables().method, "method"),
    "static method": (Callables.static, "static"),
    "class method": (Callables.of_class, "of_class"),
    "class": (Callables, "plain function"),
    "lambda": (lambda: ran.append("called"), "name="),
    "builtin": (len, "plain function"),
    "workflow": (stepping, "ctx.child"),
    "name": ("plain", "not str"),
    "nothing": (None, "not NoneType"),
}


@workflow
def given(ctx: Context, what: str) -> Any:
    return ctx.step(GIVEN[what][0])


@pytest.mark.parametrize("what", GIVEN)
def test_what_is_no_plain_function_is_refused_by_name_where_it_is_handed_over(what: str) -> None:
    execution = given.start(what)
    drain()
    row = Execution.objects.locate(execution.pk)
    assert row.status == "failed"
    assert row.error is not None
    assert row.error["type"] == "builtins.TypeError"
    assert GIVEN[what][1] in row.error["message"]
    assert ran == []
    assert not Checkpoint.objects.exists()


@workflow
def makes_its_steps(ctx: Context) -> list[str]:
    """Steps that exist only while the body runs, found again by their names at every replay."""
    got = []
    for number in range(3):
        inner = step(lambda number=number: plain(f"inner {number}"), name=f"field.inner {number}")
        got.append(ctx.step(inner))
        ctx.sleep(60)
    return got


def test_a_step_declared_while_its_workflow_runs_is_found_again_at_every_replay() -> None:
    execution = makes_its_steps.start()
    drain()
    for _ in range(3):
        make_due()
        drain()
    assert Execution.objects.locate(execution.pk).output == ["inner 0", "inner 1", "inner 2"]
    assert ran == ["inner 0", "inner 1", "inner 2"]


def test_a_workflow_declared_late_is_known_at_once() -> None:
    def late(ctx: Context) -> str:
        return "late"

    flow = workflow("field.late")(late)
    try:
        execution = find_workflow("field.late").start()
        drain()
        assert Execution.objects.locate(execution.pk).output == "late"
    finally:
        forget(flow)
