"""cancel, pause, resume, retry: in every state, attributed, once."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError, connections

from django_durable import Context, Execution, InvalidTransition, PlaneUnavailable, step, workflow
from django_durable.models import DispatchHint, OperatorAction, OperatorNote, TenantEpoch
from django_durable.planes import bump_epoch
from django_durable.runtime.turn import run_turn
from tests.driving import USING, claim, drain, lapse_leases, lease_of, make_due

pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def first() -> None:
    ran.append("first")


@step
def second() -> None:
    ran.append("second")


@step
def cancels_itself(key: str) -> str:
    ran.append("cancels")
    chores.get(key).cancel(actor="ann", reason="enough")
    return "too late"


@step
def pauses_itself(key: str) -> str:
    ran.append("pauses")
    chores.get(key).pause(actor="ann", reason="look first")
    return "kept"


@workflow
def chores(ctx: Context, what: str) -> str:
    ctx.step(first)
    if what == "cancel":
        return ctx.step(cancels_itself, ctx.key or "")
    if what == "pause":
        kept = ctx.step(pauses_itself, ctx.key or "")
        ctx.step(second)
        return kept
    if what == "break":
        ctx.breakpoint("before the second")
    if what == "sleep":
        ctx.sleep(3600)
    if what == "wait":
        ctx.wait_for_signal("go")
    ctx.step(second)
    return "done"


def status(execution: Execution[str]) -> str:
    return Execution.objects.locate(execution.pk).status


@pytest.mark.parametrize("what", ["", "sleep", "wait", "break"])
def test_cancel_ends_an_execution_in_whatever_state_it_rests(what: str) -> None:
    execution = chores.using(key="k").start(what)
    if what:
        drain()
    assert execution.cancel(actor="ann", reason="no longer wanted") is True
    assert execution.status == "cancelled"
    assert execution.cancel_requested_at is not None
    assert execution.finished_at is not None
    assert execution.wake_at is None
    assert not DispatchHint.objects.exists()
    assert execution.cancel(actor="bob") is False
    before = list(ran)
    make_due()
    drain()
    assert ran == before
    assert status(execution) == "cancelled"
    note = OperatorNote.objects.get()
    assert (note.verb, note.actor, note.reason) == ("cancel", "ann", "no longer wanted")
    assert OperatorAction.objects.get().actor == "ann"


def test_a_cancel_during_a_step_refuses_its_result() -> None:
    execution = chores.using(key="k").start("cancel")
    drain()
    row = Execution.objects.locate(execution.pk)
    assert row.status == "cancelled"
    assert row.output is None
    assert row.error is None
    assert [h["name"].rpartition(".")[2] for h in row.history()] == ["first"]


def test_a_pause_during_a_step_keeps_its_result_and_stops_before_the_next_position() -> None:
    execution = chores.using(key="k").start("pause")
    drain()
    assert status(execution) == "paused"
    assert ran == ["first", "pauses"]
    with pytest.raises(InvalidTransition):
        execution.pause(actor="bob")
    execution.resume(actor="ann")
    assert execution.status == "pending"
    drain()
    assert Execution.objects.locate(execution.pk).output == "kept"
    assert ran == ["first", "pauses", "second"]


def test_a_breakpoint_pauses_until_it_is_resumed() -> None:
    execution = chores.using(key="k").start("break")
    drain()
    assert status(execution) == "paused"
    assert drain() == 0
    execution.resume(actor="ann")
    drain()
    assert status(execution) == "completed"
    assert ran == ["first", "second"]


def test_what_arrives_while_paused_is_kept() -> None:
    execution = chores.using(key="k").start("wait")
    drain()
    execution.pause(actor="ann")
    assert execution.status == "paused"
    execution.signal("go", 1)
    assert status(execution) == "paused"
    assert drain() == 0
    execution.resume(actor="ann")
    drain()
    assert status(execution) == "completed"


def test_a_paused_start_is_not_begun() -> None:
    execution = chores.using(key="k").start("")
    execution.pause(actor="ann")
    assert drain() == 0
    assert ran == []
    execution.resume()
    drain()
    assert status(execution) == "completed"


def test_retry_and_pause_need_an_actor_and_a_fitting_status() -> None:
    execution = chores.using(key="k").start("")
    with pytest.raises(ValueError, match="actor"):
        execution.pause(actor=" ")
    with pytest.raises(ValueError, match="actor"):
        execution.retry(actor="")
    with pytest.raises(InvalidTransition):
        execution.retry(actor="ann")
    with pytest.raises(InvalidTransition):
        execution.resume(actor="ann")
    drain()
    with pytest.raises(InvalidTransition):
        execution.pause(actor="ann")


def test_an_actor_may_be_a_user() -> None:
    user = get_user_model().objects.create_user("clara")
    execution = chores.using(key="k").start("sleep")
    execution.cancel(actor=user)
    assert OperatorNote.objects.get().actor == "clara"


def test_a_worker_that_lost_its_lease_commits_nothing_and_the_other_one_finishes() -> None:
    execution = chores.using(key="k").start("")
    [zombie] = claim()
    lapse_leases()
    [heir] = claim()
    run_turn(zombie, lease_of(zombie))
    assert ran == ["first"]
    assert Execution.objects.locate(execution.pk).history() == []
    run_turn(heir, lease_of(heir))
    assert status(execution) == "completed"


def test_a_dead_execution_starts_its_step_once_more_than_the_cap_and_retry_opens_a_fresh_budget() -> None:
    execution = capped.start()
    for _ in range(3):
        [_claimed] = claim()
        lapse_leases()
    assert claim() == []
    dead = Execution.objects.locate(execution.pk)
    assert dead.status == "dead"
    assert dead.error is not None
    assert dead.error["type"] == "django_durable.errors.WorkerLost"
    assert "worker lost" in dead.error["message"]
    assert not DispatchHint.objects.exists()
    dead.retry(actor="ann")
    assert dead.recoveries == 0
    drain()
    assert status(dead) == "completed"


@workflow(max_recoveries=2)
def capped(ctx: Context) -> None:
    ctx.step(first)


@workflow(timeout=5)
def in_time(ctx: Context) -> None:
    ctx.step(first)
    ctx.wait_for_signal("never")


def test_an_execution_past_its_timeout_is_timed_out_and_retry_measures_anew() -> None:
    execution = in_time.start()
    assert execution.deadline is not None
    drain()
    hint = DispatchHint.objects.get()
    assert hint.due_at == execution.deadline
    past_the_deadline()
    drain()
    late = Execution.objects.locate(execution.pk)
    assert late.status == "timed_out"
    assert late.error is not None
    assert late.error["type"] == "django_durable.errors.ExecutionTimedOut"
    late.retry(actor="ann")
    assert late.deadline is not None
    assert late.deadline > execution.deadline
    drain()
    assert status(late) == "waiting"
    late.signal("never")
    drain()
    assert status(late) == "completed"
    assert ran == ["first"]


def past_the_deadline() -> None:
    from django.db.models import QuerySet

    DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")
    QuerySet(Execution).update(deadline="2000-01-01T00:00:00Z")


def test_a_pause_that_a_shutdown_overtook_can_be_taken_back() -> None:
    from django_durable.engine.transitions import leave
    from django_durable.engine.transitions.leave import Pages

    execution = chores.using(key="k").start("")
    [claimed] = claim()
    execution.pause(actor="ann")
    assert execution.status == "running"
    assert leave.release(claimed, Pages())
    assert status(execution) == "pending"
    execution.resume(actor="ann")
    drain()
    assert status(execution) == "completed"


def test_a_pause_that_a_shutdown_overtook_takes_effect_in_the_next_turn() -> None:
    from django_durable.engine.transitions import leave
    from django_durable.engine.transitions.leave import Pages

    execution = chores.using(key="k").start("")
    [claimed] = claim()
    execution.pause(actor="ann")
    assert leave.release(claimed, Pages())
    drain()
    assert status(execution) == "paused"
    assert ran == []


def test_a_bump_of_the_epoch_and_its_note_are_one_transaction() -> None:
    TenantEpoch.objects.using(USING).create(tenant="acme", epoch=3, moved_to="north")
    with pytest.raises(PlaneUnavailable):
        bump_epoch("acme", actor="ann")
    assert not OperatorAction.objects.exists()
    TenantEpoch.objects.using(USING).update(moved_to="")

    def broken(execute: Any, sql: str, *rest: Any) -> Any:
        if "django_durable_operatoraction" in sql:
            raise OperationalError("disk full")
        return execute(sql, *rest)

    with connections[USING].execute_wrapper(broken), pytest.raises(OperationalError):
        bump_epoch("acme", actor="ann")
    assert TenantEpoch.objects.using(USING).get().epoch == 3
    assert bump_epoch("acme", actor="ann") == 4
    assert OperatorAction.objects.get().actor == "ann"
