"""run_until_idle moves the clock over what it was told to skip, in the order of events, and over nothing else."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from django_durable import Context, Retry, RetryAfter, SignalTimeout, StepTimeout, step, workflow
from django_durable.clock import read_now
from django_durable.testing import DurableKit, timeline
from testproject.shop.models import Order
from tests.driving import USING, connection

pytest_plugins = ["django_durable.testing.plugin"]

order: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    order.clear()


def now() -> datetime:
    return read_now(USING)


@step
def note(what: str) -> None:
    order.append(what)


@workflow
def sleeps(ctx: Context, name: str, seconds: float) -> str:
    ctx.sleep(seconds)
    ctx.step(note, name)
    return name


@workflow
def waits(ctx: Context, name: str, seconds: float) -> Any:
    try:
        return ctx.wait_for_signal("go", timeout=seconds)
    except SignalTimeout:
        ctx.step(note, f"{name} timed out")
        return "late"


def test_nothing_moves_without_skip(durable: DurableKit) -> None:
    execution = sleeps.start("a", 60)
    before = now()
    assert durable.run_until_idle(skip=None) == 1
    assert now() - before < timedelta(seconds=30)
    durable.advance(30)
    assert durable.run_until_idle(skip=None) == 0
    durable.advance(timedelta(seconds=30))
    assert order == []  # advance only moves the clock
    assert durable.run_until_idle(skip=None) == 1
    execution.refresh_from_db()
    assert execution.result() == "a"


def test_sleeps_are_skipped_and_waits_are_not(durable: DurableKit) -> None:
    slept = sleeps.start("a", 3600)
    waiting = waits.start("b", 7200)
    before = now()
    durable.run_until_idle()
    assert timedelta(hours=1) <= now() - before < timedelta(hours=1, minutes=1)
    slept.refresh_from_db()
    waiting.refresh_from_db()
    assert (slept.status, waiting.status) == ("completed", "waiting")
    durable.run_until_idle(skip="all")
    waiting.refresh_from_db()
    assert waiting.result() == "late"
    assert timedelta(hours=2) <= now() - before < timedelta(hours=2, minutes=1)


def test_there_is_one_clock_so_what_falls_due_on_the_way_happens_on_the_way_in_order(durable: DurableKit) -> None:
    sleeps.start("third", 3000)
    waits.start("second", 2000)
    sleeps.start("first", 1000)
    waits.start("fourth", 4000)
    durable.run_until_idle()
    assert order == ["first", "second timed out", "third"]


def test_a_start_for_later_is_skipped_like_a_sleep(durable: DurableKit) -> None:
    execution = durable.run(sleeps, "a", 0, run_after=timedelta(days=30))
    assert execution.status == "completed"
    assert execution.started_at >= execution.run_after
    assert execution.run_after - execution.created_at > timedelta(days=29)


def test_a_sleep_does_not_carry_over_the_deadline(durable: DurableKit) -> None:
    execution = durable.run(sleeps, "a", 3600, timeout=60)
    assert execution.status == "timed_out"
    assert execution.finished_at - execution.created_at < timedelta(minutes=2)
    assert order == []


def test_a_deadline_alone_is_reached_with_all_only(durable: DurableKit) -> None:
    execution = durable.run(waits, "a", 7200, timeout=60)
    assert execution.status == "waiting"
    durable.run_until_idle(skip="all")
    execution.refresh_from_db()
    assert execution.status == "timed_out"


tries: list[datetime] = []


@step(retry=Retry(max_attempts=4, initial=0.9, factor=10, maximum=3600))
def flaky(fail: int) -> int:
    tries.append(now())
    if len(tries) <= fail:
        raise ValueError("again")
    return len(tries)


@workflow
def stubborn(ctx: Context, fail: int) -> int:
    return ctx.step(flaky, fail)


def test_retry_delays_pass_on_the_clock_the_short_ones_too(durable: DurableKit) -> None:
    tries.clear()
    began = time.monotonic()
    execution = durable.run(stubborn, 3)
    assert execution.result() == 4
    gaps = [later - earlier for earlier, later in pairwise(tries)]
    wanted = [timedelta(seconds=0.9), timedelta(seconds=9), timedelta(seconds=90)]
    rounding = timedelta(milliseconds=5)  # SQLite's clock counts milliseconds
    assert all(want <= gap + rounding < want * 1.9 for gap, want in zip(gaps, wanted, strict=True)), gaps
    assert time.monotonic() - began < 0.9
    assert execution.finished_at - execution.created_at + rounding >= sum(wanted, timedelta())


def test_short_retry_delays_are_really_waited_where_the_clock_stays(durable: DurableKit) -> None:
    tries.clear()
    execution = stubborn.start(1)
    began = time.monotonic()
    assert durable.run_until_idle(skip=None) == 1
    assert time.monotonic() - began >= 0.9
    execution.refresh_from_db()
    assert execution.result() == 2


@step(retry=Retry(max_attempts=2))
def asks_for_an_hour() -> None:
    tries.append(now())
    if len(tries) == 1:
        raise RetryAfter(3600)


@workflow
def patient(ctx: Context) -> None:
    ctx.step(asks_for_an_hour)


def test_retry_after_is_skipped_too(durable: DurableKit) -> None:
    tries.clear()
    assert durable.run(patient).status == "completed"
    assert tries[1] - tries[0] >= timedelta(hours=1)


@step(retry=Retry(max_attempts=2, initial=0), timeout=30)
def slow(seconds: float) -> str:
    raise AssertionError("stubbed")


@step(transactional=True, retry=Retry(max_attempts=2, initial=0), total_timeout=30)
def slow_in_a_transaction() -> str:
    raise AssertionError("stubbed")


@workflow
def takes_its_time(ctx: Context, seconds: float) -> str:
    return ctx.step(slow, seconds)


@workflow
def takes_its_time_in_a_transaction(ctx: Context) -> str:
    return ctx.step(slow_in_a_transaction)


def test_a_body_that_advances_the_clock_has_taken_so_long(durable: DurableKit) -> None:
    def take(seconds: float) -> str:
        durable.advance(seconds)
        return "done"

    stub = durable.stub_step(slow, side_effect=take)
    execution = durable.run(takes_its_time, 29)
    assert execution.output == "done"
    (entry,) = execution.history()
    assert entry["finished_at"] - entry["started_at"] >= timedelta(seconds=29)
    late = durable.run(takes_its_time, 31)
    assert (late.status, late.error["type"]) == ("failed", "django_durable.errors.StepTimeout")
    assert (late.error["attempts"], len(stub.calls)) == (2, 3)
    assert issubclass(StepTimeout, Exception)


def test_a_late_body_that_raises_has_timed_out_all_the_same(durable: DurableKit) -> None:
    def take(seconds: float) -> str:
        durable.advance(seconds)
        raise KeyError("late")

    durable.stub_step(slow, side_effect=take)
    assert durable.run(takes_its_time, 31).error["type"] == "django_durable.errors.StepTimeout"


def test_a_late_transactional_body_leaves_no_writes(durable: DurableKit) -> None:
    def take() -> str:
        Order.objects.create()
        durable.advance(31)
        return "done"

    durable.stub_step(slow_in_a_transaction, side_effect=take)
    execution = durable.run(takes_its_time_in_a_transaction)
    assert execution.error["type"] == "django_durable.errors.StepTimeout"
    assert "total_timeout of 30" in execution.error["message"]
    assert Order.objects.count() == 0
    assert connection.in_atomic_block


def test_a_body_past_the_execution_s_deadline_times_the_execution_out(durable: DurableKit) -> None:
    durable.stub_step(flaky, side_effect=lambda _fail: durable.advance(61))
    execution = durable.run(stubborn, 0, timeout=60)
    assert (execution.status, execution.history()) == ("timed_out", [])


def test_a_retry_delay_past_the_deadline_starts_no_further_body(durable: DurableKit) -> None:
    stub = durable.stub_step(flaky, side_effect=[ValueError("no"), 1])
    execution = durable.run(stubborn, 0, timeout=0.5)
    assert (execution.status, len(stub.calls)) == ("timed_out", 1)


@workflow
def goes_on_for_ever(ctx: Context) -> None:
    while True:
        ctx.sleep(1)


def test_a_workflow_without_end_is_stopped_by_max_turns(durable: DurableKit) -> None:
    execution = goes_on_for_ever.start()
    with pytest.raises(AssertionError, match=rf"not idle after 25 turns .* execution {execution.pk} of .*for_ever"):
        durable.run_until_idle(max_turns=25)
    execution.refresh_from_db()
    assert execution.status == "pending"
    assert len(execution.history()) == 25
    execution.cancel()


def test_exactly_max_turns_are_enough(durable: DurableKit) -> None:
    sleeps.start("a", 1)
    assert durable.run_until_idle(max_turns=2) == 2
    assert durable.run_until_idle(max_turns=0) == 0


@workflow
def stops(ctx: Context) -> str:
    ctx.breakpoint("here")
    return "passed"


def test_paused_and_blocked_are_idle(durable: DurableKit) -> None:
    broken = durable.run(queries)
    halted = durable.run(stops, timeout=timedelta(days=1))
    before = now()
    assert durable.run_until_idle(skip="all") == 0
    assert (broken.status, halted.status) == ("blocked", "paused")
    assert now() - before < timedelta(hours=1)
    halted.resume(actor="ann")
    durable.run_until_idle()
    halted.refresh_from_db()
    assert halted.result() == "passed"


@workflow
def queries(ctx: Context) -> int:
    return Order.objects.count()


def test_an_unknown_way_to_skip_is_refused(durable: DurableKit) -> None:
    with pytest.raises(ValueError, match='skip must be "sleeps", "all" or None, not \'sleep\''):
        durable.run_until_idle(skip="sleep")  # type: ignore[arg-type]


@pytest.mark.parametrize("duration", [-1, float("nan"), "1", None])
def test_the_clock_goes_forward_only(durable: DurableKit, duration: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="duration"):
        durable.advance(duration)


def test_a_sleeper_behind_many_waits_is_found(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "PAGE", 3)
    for number in range(10):
        waits.start(str(number), 10 + number)
    sleeps.start("last", 1000)
    durable.run_until_idle()
    assert order == [*(f"{number} timed out" for number in range(10)), "last"]
