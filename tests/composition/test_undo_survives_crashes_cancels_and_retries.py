"""Rules 38 to 40: one undo list; what is undone is undone once, whatever dies, and a retry only goes on with it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from django_durable import (
    Context,
    ExecutionClosed,
    InvalidTransition,
    Retry,
    StepFailed,
    current_step,
    step,
    workflow,
)
from django_durable.authoring import registry
from django_durable.engine.transitions.epoch import bump_epoch
from django_durable.models import Checkpoint, DeadLetter, DispatchHint
from django_durable.operators.doctor.liveness import liveness_violations
from django_durable.runtime import turn
from django_durable.runtime.sweeps import rebuild_everything
from django_durable.runtime.unknown_work import block_unknown
from django_durable.signals import execution_finished
from django_durable.testing import DurableKit, fail_step, stub_step
from testproject.shop.models import Order
from tests.composition.trips import block, book, during, keys, log, note, refuse, trip, unbook, undone
from tests.driving import USING

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

BOOKED = ["book a", "book b", "book c"]
UNBOOKED = ["unbook c", "unbook b", "unbook a"]
HOUR = 3600.0
broken: set[str] = set()


@pytest.fixture(autouse=True)
def _mend() -> None:
    broken.clear()


@step("undo.fragile")
def fragile(what: str) -> None:
    note(f"unbook {what}")
    if what in broken:
        raise OSError("broken")


@workflow("undo.fragile_trip")
def fragile_trip(ctx: Context, in_block: bool = False) -> None:
    if in_block:
        with ctx.saga():
            book_all(ctx)
    book_all(ctx)


def book_all(ctx: Context) -> None:
    for what in "abc":
        ctx.compensate(fragile, what)
        ctx.step(book, what)
    ctx.step(refuse, "d")


@pytest.mark.parametrize("flow", [trip, block], ids=["whole run", "block"])
@pytest.mark.parametrize("position", [0, 2, 4])
def test_a_crash_in_an_undo_step_repeats_that_one_only(durable: DurableKit, flow: Any, position: int) -> None:
    execution = flow.start("fail")
    crash = durable.crash_turn(position, undo=True)
    durable.run_until_idle()
    execution.refresh_from_db()
    assert crash.happened and execution.status == "failed"
    what = f"unbook {'abc'[position // 2]}"
    assert [log.count(one) for one in UNBOOKED] == [2 if one == what else 1 for one in UNBOOKED]
    assert keys[what] == {f"{execution.pk}:undo.{position}"}, "the same key again"
    assert execution.recoveries == 1


@pytest.mark.parametrize("flow", [trip, block], ids=["whole run", "block"])
def test_cancel_while_an_undo_step_runs_repeats_none(durable: DurableKit, flow: Any) -> None:
    execution = flow.start("fail")
    answers: list[bool] = []
    during["unbook b"] = lambda: answers.append(execution.cancel())
    durable.run_until_idle()
    execution.refresh_from_db()
    assert log == [*BOOKED, "refuse d", *UNBOOKED]
    # The whole run's undo is how it fails already; a block's may still be followed by anything.
    assert (answers, execution.status) == (([False], "failed") if flow is trip else ([True], "cancelled"))


def test_a_run_that_dies_after_a_cancel_is_undone_by_whoever_takes_over(durable: DurableKit) -> None:
    execution = trip.start()
    during["book b"] = lambda: execution.cancel(actor="ann")
    crash = durable.crash_turn(3)
    durable.run_until_idle()
    execution.refresh_from_db()
    assert crash.happened
    assert execution.status == "cancelled"
    assert log == ["book a", "book b", "unbook b", "unbook a"]


def test_cancel_just_before_the_return_undoes(durable: DurableKit, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = turn.complete

    def cancelled_first(*args: Any, **kwargs: Any) -> bool:
        assert execution.cancel() is True
        return complete(*args, **kwargs)

    monkeypatch.setattr(turn, "complete", cancelled_first)
    execution = trip.start()
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "cancelled"
    assert log == [*BOOKED, *UNBOOKED]


@pytest.mark.parametrize("state", ["pending", "paused", "blocked", "waiting"])
def test_cancel_undoes_from_every_state(durable: DurableKit, state: str) -> None:
    execution = trip.start("wait")
    durable.run_until_idle(skip=None)
    if state == "pending":
        execution.signal("go")
    elif state == "paused":
        execution.pause(actor="ann")
    elif state == "blocked":
        execution.signal("go")
        registry.forget(trip)
        try:
            block_unknown(USING)
        finally:
            registry.add_workflow(trip)
    execution.refresh_from_db()
    assert execution.status == state
    assert execution.cancel() is True
    assert execution.status == "compensating"
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "cancelled"
    assert log[-3:] == UNBOOKED


def test_cancel_of_a_running_one_tells_its_body_and_keeps_the_status_until_it_has_stopped(
    durable: DurableKit,
) -> None:
    execution = trip.start()
    seen: list[Any] = []

    def cancel() -> None:
        seen.append(execution.cancel())
        seen.append(execution.status)
        seen.append(DispatchHint.objects.get(execution_id=execution.pk).revoked)
        with pytest.raises(ExecutionClosed):
            execution.signal("go")
        with pytest.raises(InvalidTransition):
            execution.pause(actor="ann")
        seen.append(execution.cancel())

    during["book b"] = cancel
    durable.run_until_idle()
    execution.refresh_from_db()
    assert seen == [True, "running", True, False]
    assert execution.status == "cancelled"


def test_cancel_without_compensation_ends_at_once(durable: DurableKit) -> None:
    execution = durable.run(trip, "wait")
    assert execution.cancel(compensate=False) is True
    assert execution.status == "cancelled"
    durable.run_until_idle()
    assert log == BOOKED


def test_cancel_without_compensation_stops_an_undo_that_is_under_way(durable: DurableKit) -> None:
    execution = durable.run(trip, "wait")
    execution.cancel()
    answers: list[bool] = []
    during["unbook c"] = lambda: answers.append(execution.cancel(compensate=False))
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (answers, execution.status) == ([True], "cancelled")
    assert log == [*BOOKED, "unbook c"]
    assert undone(execution) == [], "what the body under way came to is refused"


def test_a_retry_resumes_the_undo_only(durable: DurableKit) -> None:
    broken.add("b")
    execution = durable.run(fragile_trip)
    assert execution.status == "failed"
    assert log == [*BOOKED, "refuse d", *UNBOOKED]
    assert [status for _name, status in undone(execution)] == ["completed", "failed", "completed"]

    broken.clear()
    log.clear()
    execution.retry(actor="ann", reason="mended")
    assert execution.status == "compensating"
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "failed"
    assert log == ["unbook b"]
    assert execution.error is not None and execution.error["step"] == "trips.refuse"
    assert DeadLetter.objects.filter(execution_id=execution.pk).count() == 2

    with pytest.raises(InvalidTransition, match="its undo steps have run"):
        execution.retry(actor="ben")


@pytest.mark.parametrize("breaks", [True, False])
def test_a_retry_after_a_block_that_the_fatal_error_left_resumes_its_undo_only(
    durable: DurableKit, breaks: bool
) -> None:
    broken.update("b" if breaks else "")
    execution = durable.run(fragile_trip, True)
    assert execution.status == "failed"
    assert log == [*BOOKED, "refuse d", *UNBOOKED]
    broken.clear()
    log.clear()
    if not breaks:
        with pytest.raises(InvalidTransition, match="its undo steps have run"):
            execution.retry(actor="ann")
        return
    execution.retry(actor="ann")
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, log) == ("failed", ["unbook b"])
    assert execution.error is not None and execution.error["step"] == "trips.refuse"


@workflow("undo.handled_then_failed")
def handled_then_failed(ctx: Context) -> str:
    with suppress(StepFailed), ctx.saga():
        ctx.compensate(unbook, "a")
        ctx.step(book, "a")
        ctx.step(refuse, "b")
    ctx.step(book, "c")
    return "done"


def test_a_retry_after_a_block_whose_error_was_handled_goes_forward(durable: DurableKit) -> None:
    with stub_step(book, side_effect=[None, ValueError("no c")]):
        execution = durable.run(handled_then_failed)
    assert (execution.status, log) == ("failed", ["refuse b", "unbook a"])
    execution.retry(actor="ann")
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.result() == "done"
    assert log == ["refuse b", "unbook a", "book c"]


@step("undo.lethal")
def lethal(what: str) -> None:
    note(f"unbook {what}")
    if what in broken:
        raise SystemExit(3)


@workflow("undo.lethal_trip", max_recoveries=1)
def lethal_trip(ctx: Context) -> None:
    ctx.compensate(lethal, "a")
    ctx.compensate(lethal, "b")
    ctx.step(refuse, "c")


def test_an_undo_step_that_kills_its_process_makes_the_run_dead_and_a_retry_goes_on_with_it(
    durable: DurableKit,
) -> None:
    broken.add("a")
    execution = durable.run(lethal_trip)
    assert execution.status == "dead"
    assert log == ["refuse c", "unbook b", "unbook a", "unbook a"]
    broken.clear()
    log.clear()
    execution.retry(actor="ann")
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, log) == ("failed", ["unbook a"])
    assert execution.error is not None and execution.error["step"] == "trips.refuse", "what it failed of"


@workflow("undo.changing")
def changing(ctx: Context) -> None:
    if shortened:
        ctx.sleep(HOUR)
    ctx.compensate(unbook, "a")
    ctx.step(book, "a")
    ctx.wait_for_signal("go")


shortened: list[bool] = []


def test_a_body_that_does_not_match_its_history_is_blocked_and_undone_once_it_does(durable: DurableKit) -> None:
    execution = durable.run(changing)
    shortened.append(True)
    try:
        execution.cancel()
        durable.run_until_idle()
        execution.refresh_from_db()
        assert execution.status == "blocked"
        assert log == ["book a"]
        assert execution.cancel() is False, "it is being cancelled"
    finally:
        shortened.clear()
    execution.resume(actor="ann")
    assert execution.status == "compensating"
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, log) == ("cancelled", ["book a", "unbook a"])


@workflow("undo.swallowing")
def swallowing(ctx: Context) -> str:
    ctx.compensate(unbook, "a")
    ctx.step(book, "a")
    with suppress(BaseException):
        ctx.wait_for_signal("go")
    with suppress(BaseException):
        ctx.step(book, "never")
    return "went on"


def test_a_swallowed_suspension_undoes_before_failed_and_a_swallowed_stop_runs_nothing(durable: DurableKit) -> None:
    execution = durable.run(swallowing)
    assert execution.status == "failed"
    assert execution.error is not None and execution.error["type"].endswith("SuspensionSwallowed")
    assert log == ["book a", "unbook a"]


def test_a_dead_run_undoes_nothing(durable: DurableKit) -> None:
    execution = dying.start()
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, log) == ("dead", ["book a"])


@workflow("undo.dying", max_recoveries=0)
def dying(ctx: Context) -> None:
    ctx.compensate(unbook, "a")
    ctx.step(book, "a")
    ctx.step(leaves)


@step("undo.leaves")
def leaves() -> None:
    raise SystemExit(1)


def test_execution_finished_is_told_once_at_the_real_end(durable: DurableKit) -> None:
    told: list[str] = []

    def receive(execution: Any, **_more: Any) -> None:
        told.append(execution.status)

    execution_finished.connect(receive)
    try:
        execution = durable.run(trip, "wait")
        execution.cancel()
        assert told == []
        durable.run_until_idle()
    finally:
        execution_finished.disconnect(receive)
    assert told == ["cancelled"]


def test_an_epoch_bump_and_a_lost_hint_leave_the_undo_to_be_carried_on(durable: DurableKit) -> None:
    execution = trip.using(tenant="acme").start("wait")
    durable.run_until_idle()
    execution.cancel()
    bump_epoch(USING, "acme")
    DispatchHint.objects.all().delete()
    assert liveness_violations(USING) == [execution.pk]
    assert rebuild_everything(USING) == 1
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, log[-3:]) == ("cancelled", UNBOOKED)


def test_an_epoch_bump_of_a_cancelled_run_still_under_way_leads_to_its_undo(durable: DurableKit) -> None:
    execution = trip.using(tenant="acme").start()

    def cancel_and_bump() -> None:
        execution.cancel()
        bump_epoch(USING, "acme")

    during["book b"] = cancel_and_bump
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "cancelled"
    assert log == ["book a", "book b", "unbook b", "unbook a"]


@step("undo.paid", transactional=True)
def paid(what: str) -> None:
    note(f"unbook {what}")
    Order.objects.create(payment_id=what)


@step("undo.once", at_most_once=True, retry=Retry(max_attempts=2, initial=0.0))
def once(what: str) -> None:
    note(f"unbook {what}")


@workflow("undo.kinds")
def kinds(ctx: Context, in_block: bool) -> None:
    if in_block:
        with ctx.saga():
            ctx.compensate(paid, "paid")
            ctx.compensate(once, "once")
            ctx.step(refuse, "it")
    ctx.compensate(paid, "paid")
    ctx.compensate(once, "once")
    ctx.step(refuse, "it")


@pytest.mark.parametrize("in_block", [True, False])
def test_undo_steps_may_be_of_each_kind(durable: DurableKit, in_block: bool) -> None:
    crash = durable.crash_turn(1, undo=True)
    execution = durable.run(kinds, in_block)
    assert crash.happened and execution.status == "failed"
    assert Order.objects.filter(payment_id="paid").count() == 1
    attempts = [e["attempts"] for e in execution.history() if e["kind"] == "undo"]
    assert attempts == [1, 2], "the interrupted body counts as an attempt"


def test_stubs_and_failures_of_the_kit_stand_in_for_undo_steps(durable: DurableKit) -> None:
    with stub_step(unbook) as stub, fail_step(unbook, times=1):
        durable.run(trip, "fail")
    assert [call.args for call in stub.calls] == [("c",), ("b",), ("a",)]
    assert log == [*BOOKED, "refuse d"]
    attempts = Checkpoint.objects.filter(kind="undo").order_by("position").values_list("attempt", flat=True)
    assert list(attempts) == [1, 1, 2]


@step("undo.slow", timeout=10.0, retry=Retry(max_attempts=2, initial=0.0))
def slow(what: str) -> None:
    note(what)


@workflow("undo.slow_trip")
def slow_trip(ctx: Context) -> None:
    ctx.compensate(slow, "unbook a")
    ctx.step(slow, "book a")
    ctx.step(refuse, "b")


def test_an_undo_step_that_overruns_its_timeout_is_attempted_again(durable: DurableKit) -> None:
    during["unbook a"] = lambda: durable.advance(11)
    execution = durable.run(slow_trip)
    assert (execution.status, log) == ("failed", ["book a", "refuse b", "unbook a", "unbook a"])
    [undo] = [entry for entry in execution.history() if entry["kind"] == "undo"]
    assert (undo["status"], undo["attempts"]) == ("completed", 2)


def test_a_step_that_overruns_its_timeout_after_a_cancel_no_longer_holds_the_undo_up(durable: DurableKit) -> None:
    execution = slow_trip.start()

    def cancel_and_hang() -> None:
        execution.cancel()
        durable.advance(11)

    during["book a"] = cancel_and_hang
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, log) == ("cancelled", ["book a", "unbook a"])


def test_an_undo_step_is_not_told_that_it_is_unwanted(durable: DurableKit) -> None:
    """A cancel revokes the work under way; what it asks for is wanted."""
    execution = block.start("fail")
    wanted: list[bool] = []
    during["unbook c"] = execution.cancel
    during["unbook b"] = lambda: wanted.append(not current_step().cancelled)
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, wanted) == ("cancelled", [True])
