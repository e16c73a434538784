"""crash_turn kills the process between a body and its checkpoint, at every position; another worker goes on."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from django_durable import Context, Retry, SignalTimeout, StepFailed, current_step, step, workflow
from django_durable.clock import read_now
from django_durable.models import DispatchHint
from django_durable.testing import DurableKit, crash_turn, run, run_until_idle
from testproject.shop.models import Order
from tests.driving import USING

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

bodies: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    bodies.clear()


@step
def plain(name: str) -> str:
    bodies.append(name)
    return name


@step(transactional=True)
def in_a_transaction(name: str) -> str:
    bodies.append(name)
    Order.objects.create(customer_email=f"{name}@example.com")
    return name


@step(at_most_once=True, retry=Retry(max_attempts=2, initial=0))
def at_most_once(name: str) -> int:
    bodies.append(name)
    return current_step().attempt


@step(retry=Retry(max_attempts=2, initial=90))
def flaky(name: str) -> str:
    bodies.append(name)
    if current_step().attempt == 1:
        raise ValueError("the first one fails")
    return name


@workflow
def everything(ctx: Context) -> list[Any]:
    first = ctx.step(plain, "first")  # 0
    ctx.now()  # 1
    second = ctx.step(in_a_transaction, "second")  # 2
    ctx.uuid()  # 3
    ctx.sleep(60)  # 4
    signal = ctx.wait_for_signal("go")  # 5
    ctx.set_tags(seen=True)  # 6
    try:
        ctx.wait_for_signal("never", timeout=60)  # 7
    except SignalTimeout:
        third = ctx.step(flaky, "third")  # 8
    ctx.set_value("almost", True)  # 9
    return [first, second, signal, third]


@pytest.mark.parametrize("position", range(11))
def test_every_position_survives_a_crash_before_its_record(durable: DurableKit, position: int) -> None:
    durable.on_wait("go", lambda execution: execution.signal("go", "went"))
    crash = durable.crash_turn(at_position=position)
    execution = everything.start()
    durable.run_until_idle(skip="all")
    execution.refresh_from_db()
    assert crash.happened
    assert execution.result() == ["first", "second", "went", "third"]
    takeovers = json.loads(execution.takeovers)
    assert [entry["reason"] for entry in takeovers] == ["lease expired"]
    assert Order.objects.count() == 1
    assert execution.tags == {"seen": True}
    assert [entry["position"] for entry in execution.history()] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    repeated = {0: ["first"], 2: ["second"], 1: [], 8: ["third"]}.get(position, [])
    assert sorted(bodies) == sorted(["first", "second", "third", "third", *repeated])


def test_the_next_worker_is_another_one_and_a_recovery_is_counted(durable: DurableKit) -> None:
    durable.crash_turn(at_position=0)
    execution = everything.start()
    before = read_now(USING)
    durable.run_until_idle(skip=None, max_turns=2)
    execution.refresh_from_db()
    assert execution.recoveries == 1
    (takeover,) = json.loads(execution.takeovers)
    assert takeover["worker"]
    assert bodies == ["first", "first", "second"]
    assert read_now(USING) - before < timedelta(seconds=20)  # the lease lapsed, the clock did not move


def test_nothing_is_written_after_the_crash(durable: DurableKit) -> None:
    seen: list[Any] = []

    @workflow("tests.tidies_up")
    def tidies_up(ctx: Context) -> None:
        try:
            ctx.step(plain, "first")
        finally:
            seen.append(ctx.history_size)
            ctx.step(plain, "tidy")

    execution = tidies_up.start()
    with durable.crash_turn(at_position=0), pytest.raises(AssertionError, match="not idle after 1 turns"):
        durable.run_until_idle(max_turns=1)
    assert (execution.history(), bodies) == ([], ["first"])
    durable.run_until_idle()
    assert bodies == ["first", "first", "tidy"]


@workflow
def careful(ctx: Context) -> Any:
    return ctx.step(at_most_once, "once")


def test_a_crash_in_an_at_most_once_body_is_an_attempt(durable: DurableKit) -> None:
    durable.crash_turn(at_position=0)
    execution = durable.run(careful)
    assert (execution.output, bodies) == (2, ["once", "once"])
    assert execution.history()[0]["attempts"] == 2


def test_two_crashes_use_up_both_attempts_of_an_at_most_once_step(durable: DurableKit) -> None:
    durable.crash_turn(at_position=0)
    durable.crash_turn(at_position=0)
    execution = durable.run(careful)
    assert execution.error["type"] == "django_durable.errors.StepInterrupted"
    assert (bodies, execution.recoveries >= 1) == (["once", "once"], True)
    assert issubclass(StepFailed, Exception)


@workflow(max_recoveries=2)
def unlucky(ctx: Context) -> str:
    return ctx.step(plain, "first")


def test_more_crashes_than_max_recoveries_are_the_end(durable: DurableKit) -> None:
    for _ in range(3):
        durable.crash_turn(at_position=0)
    execution = durable.run(unlucky)
    assert (execution.status, bodies) == ("dead", ["first"] * 3)


def test_a_crash_happens_once_and_only_where_a_turn_comes_that_far() -> None:
    with crash_turn(at_position=5) as crash:
        assert run(unlucky).status == "completed"
    assert not crash.happened
    with crash_turn(at_position=1) as crash:
        execution = run(unlucky)
    assert crash.happened
    assert (execution.output, execution.recoveries) == ("first", 1)
    assert bodies == ["first", "first"]
    assert run_until_idle() == 0
    assert DispatchHint.objects.count() == 0


def test_an_ended_crash_does_not_happen(durable: DurableKit) -> None:
    with durable.crash_turn(at_position=0):
        pass
    assert durable.run(unlucky).recoveries == 0


@pytest.mark.parametrize("position", [-1, 1.0, None, True])
def test_a_position_is_a_number(durable: DurableKit, position: Any) -> None:
    with pytest.raises(ValueError, match="at_position must be an int of at least 0"):
        durable.crash_turn(at_position=position)
