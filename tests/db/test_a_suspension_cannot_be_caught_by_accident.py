"""except Exception, finally, suppress and retry decorators around a suspension: no effect after it, ever."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from django_durable import Context, Execution, step, workflow
from tests.driving import drain, make_due

pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def cleanup() -> None:
    ran.append("cleanup")


def catches_exception(ctx: Context) -> str:
    try:
        ctx.sleep(2)
    except Exception:
        ran.append("caught")
    return "end"


def cleans_up_on_exception(ctx: Context) -> str:
    try:
        ctx.sleep(2)
    except Exception:
        ctx.step(cleanup)
    return "end"


def has_a_finally(ctx: Context) -> str:
    try:
        ctx.sleep(2)
    finally:
        ctx.step(cleanup)
    return "end"


def retries(function: Callable[[], None]) -> Callable[[], None]:
    """What tenacity does by default."""

    @functools.wraps(function)
    def again() -> None:
        for _ in range(3):
            try:
                return function()
            except Exception:
                ran.append("retried")
        return None

    return again


def is_retried(ctx: Context) -> str:
    retries(lambda: ctx.sleep(2))()
    return "end"


def has_a_bare_except(ctx: Context) -> str:
    try:
        ctx.sleep(2)
    except:  # noqa: E722
        ctx.step(cleanup)
    return "end"


def suppresses_everything(ctx: Context) -> str:
    with suppress(BaseException):
        ctx.sleep(2)
    with suppress(BaseException):
        ctx.step(cleanup)
    return "end"


def returns_from_finally(ctx: Context) -> str:
    try:
        ctx.sleep(2)
    finally:
        return "end"


def raises_instead(ctx: Context) -> str:
    try:
        ctx.sleep(2)
    except BaseException as error:
        raise ValueError("converted") from error
    return "end"


@workflow
def suspending(ctx: Context, name: str) -> Any:
    return globals()[name](ctx)


def go(name: str) -> Execution[Any]:
    execution = suspending.start(name)
    drain()
    assert ran == []
    make_due()
    drain()
    return Execution.objects.locate(execution.pk)


@pytest.mark.parametrize(
    ("name", "effects"),
    [("catches_exception", []), ("cleans_up_on_exception", []), ("has_a_finally", ["cleanup"]), ("is_retried", [])],
)
def test_ordinary_handlers_let_it_pass(name: str, effects: list[str]) -> None:
    execution = go(name)
    assert execution.status == "completed"
    assert execution.output == "end"
    assert ran == effects


@pytest.mark.parametrize("name", ["suppresses_everything", "returns_from_finally", "raises_instead"])
def test_swallowing_it_ends_in_an_error_that_says_so(name: str) -> None:
    execution = go(name)
    assert execution.status == "failed"
    assert execution.error is not None
    assert execution.error["type"] == "django_durable.errors.SuspensionSwallowed"
    assert ran == []


def test_a_bare_except_that_calls_ctx_suspends_again() -> None:
    execution = go("has_a_bare_except")
    assert execution.status in ("completed", "failed")
    assert ran == []


class SoftTimeLimitExceeded(Exception):
    """Known by its name, as Celery's and billiard's are."""


@workflow
def ends_like_a_process(ctx: Context, kind: str) -> str:
    try:
        ctx.sleep(60)
    finally:
        ran.append(kind)
        if len(ran) == 1:
            raise {"SystemExit": SystemExit, "SoftTimeLimit": SoftTimeLimitExceeded, "MemoryError": MemoryError}[kind]
    return "slept"


@pytest.mark.parametrize("kind", ["SystemExit", "SoftTimeLimit", "MemoryError"])
def test_a_process_that_ends_while_a_suspension_passes_leaves_it_as_it_is(kind: str) -> None:
    execution = ends_like_a_process.start(kind)
    drain()
    waiting = Execution.objects.locate(execution.pk)
    assert (waiting.status, waiting.error, waiting.recoveries) == ("waiting", None, 0)
    make_due()
    drain()
    assert Execution.objects.locate(execution.pk).output == "slept"
