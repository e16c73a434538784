"""``wait_any`` with futures: whichever comes first, the same at every replay; a failed one raises its error."""

from __future__ import annotations

from typing import Any

from django_durable import Context, Execution, StepFailed, WaitTimeout, step, workflow
from django_durable.testing import DurableKit

pytest_plugins = ["django_durable.testing.plugin"]


@step(queue="heavy")
def double(number: int) -> int:
    if number < 0:
        raise ValueError("negative")
    return number * 2


@workflow("anyof.child")
def child(ctx: Context) -> Any:
    return ctx.wait_for_signal("go")


@workflow("anyof.step_or_signal")
def step_or_signal(ctx: Context, number: int) -> Any:
    future = ctx.submit(double, number)
    try:
        arrived = ctx.wait_any("stop", future)
    except StepFailed as failed:
        return failed.message
    ctx.sleep(60)
    return arrived.source is future, arrived.value, future.result()


@workflow("anyof.child_or_signal")
def child_or_signal(ctx: Context) -> Any:
    future = ctx.submit(child)
    first = ctx.wait_any(future, "stop", timeout=3600)
    try:
        second = ctx.wait_any(future, timeout=3600).value
    except WaitTimeout:
        second = "late"
    return first.source is future, first.value, second


def test_a_future_that_ends_first_is_taken(durable: DurableKit) -> None:
    assert durable.run(step_or_signal, 4).output == (True, 8, 8)


def test_a_failed_one_raises_its_error(durable: DurableKit) -> None:
    assert durable.run(step_or_signal, -4).output == "negative"


def test_a_signal_that_comes_first_leaves_the_future_for_later(durable: DurableKit) -> None:
    execution = durable.run(child_or_signal)
    execution.signal("stop", "now")
    durable.run_until_idle()
    [waiting] = Execution.objects.filter(parent_id=execution.pk)
    waiting.signal("go", 5)
    durable.run_until_idle()
    assert Execution.objects.get(pk=execution.pk).output == (False, "now", 5)


def test_one_that_does_not_end_in_time_is_a_timeout(durable: DurableKit) -> None:
    execution = durable.run(child_or_signal)
    execution.signal("stop", "now")
    durable.run_until_idle(skip="all")
    assert Execution.objects.get(pk=execution.pk).output == (False, "now", "late")
