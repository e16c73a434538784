"""Steps on another queue, and futures: one result for ever, whoever ran it, in whatever order it came."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Context, Execution, FatalError, Retry, StepFailed, current_step, step, workflow
from django_durable.models import Checkpoint, DispatchHint
from django_durable.testing import DurableKit

pytest_plugins = ["django_durable.testing.plugin"]

ran: list[Any] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    ran.clear()


@step(queue="heavy")
def heavy(number: int) -> int:
    ran.append((current_step().idempotency_key.partition(":")[2], current_step().attempt))
    return number * 2


@step(queue="heavy", retry=Retry(max_attempts=3, initial=60))
def flaky(number: int) -> int:
    ran.append(current_step().attempt)
    if current_step().attempt < 3:
        raise ValueError("not yet")
    return number


@step
def light(number: int) -> int:
    ran.append(number)
    if number < 0:
        raise FatalError("negative")
    return number * 10


@workflow("elsewhere.one")
def one(ctx: Context, number: int) -> int:
    return ctx.step(heavy, number) + 1


@workflow("elsewhere.retried")
def retried(ctx: Context) -> int:
    return ctx.step(flaky, 7)


@workflow("elsewhere.many")
def many(ctx: Context, *numbers: int) -> Any:
    futures = [ctx.submit(light, number) for number in numbers]
    ctx.sleep(60)
    return ctx.gather(*futures)


@workflow("elsewhere.tolerant")
def tolerant(ctx: Context, *numbers: int) -> list[Any]:
    futures = [ctx.submit(light, number) for number in numbers]
    results = ctx.gather(*futures, return_exceptions=True)
    return [r.message if isinstance(r, StepFailed) else r for r in results]


@workflow("elsewhere.reversed")
def backwards(ctx: Context) -> list[int]:
    futures = [ctx.submit(light, number) for number in (1, 2, 3)]
    return [future.result() for future in reversed(futures)]


def test_the_execution_waits_without_a_worker_and_the_step_runs_on_its_queue(durable: DurableKit) -> None:
    execution = one.start(4)
    durable.run_until_idle(max_turns=10)
    done: Execution[Any] = Execution.objects.get(pk=execution.pk)
    assert done.output == 9
    assert ran == [("0", 1)]
    assert [e["status"] for e in done.history()] == ["completed"]
    assert not DispatchHint.objects.exists()


def test_its_queue_is_on_its_hint(durable: DurableKit) -> None:
    from tests.driving import claim, lease_of, run_claim

    execution = one.start(4)
    [turn] = claim()
    run_claim(turn, lease_of(turn))
    [hint] = DispatchHint.objects.all()
    assert (hint.queue, hint.kind, hint.position) == ("heavy", DispatchHint.Kind.STEP, 0)
    assert Execution.objects.get(pk=execution.pk).status == "waiting"
    durable.run_until_idle()


def test_its_own_policy_retries_it(durable: DurableKit) -> None:
    assert durable.run(retried).output == 7
    assert ran == [1, 2, 3]
    assert Checkpoint.objects.get().attempt == 3


def test_futures_run_while_the_execution_sleeps_and_come_in_the_order_of_the_arguments(durable: DurableKit) -> None:
    assert durable.run(many, 3, 1, 2).output == (30, 10, 20)
    assert sorted(ran) == [1, 2, 3]


def test_the_first_failure_in_argument_order_is_raised_after_all_have_ended(durable: DurableKit) -> None:
    failed = durable.run(many, 3, -1, -2, 4)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["message"] == "negative"
    assert sorted(ran) == [-2, -1, 3, 4]


def test_failures_can_stand_among_the_results(durable: DurableKit) -> None:
    assert durable.run(tolerant, 3, -1, 4).output == [30, "negative", 40]


def test_futures_can_be_awaited_in_another_order(durable: DurableKit) -> None:
    assert durable.run(backwards).output == [30, 20, 10]
