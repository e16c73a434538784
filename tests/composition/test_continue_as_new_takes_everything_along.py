"""A run that continues as new is gone in the same moment in which its successor is there, with all that belongs to it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import models

from django_durable import (
    Context,
    Execution,
    ExecutionClosed,
    ExecutionConflict,
    ExecutionNotFound,
    InvalidTransition,
    complete_callback,
    step,
    workflow,
)
from django_durable.clock import read_now
from django_durable.engine.transitions.continuation import Successor, continue_as_new
from django_durable.engine.transitions.leave import Pages
from django_durable.models import DispatchHint, Message
from django_durable.testing import DurableKit, assert_replays, export_history
from tests.driving import USING, claim, drain

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

ran: list[int] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def work(number: int) -> int:
    ran.append(number)
    return number


@workflow("tests.generations", budget={"rounds": 1})
def generations(ctx: Context, number: int, last: int = 3) -> list[int]:
    ctx.set_value("number", number)
    ctx.spend("rounds", 1)
    done = ctx.step(work, number)
    if number < last:
        ctx.continue_as_new(number + 1, last=last)
    return [done, ctx.run]


@workflow("tests.mailbox")
def mailbox(ctx: Context, taken: list[Any]) -> list[Any]:
    """One message a run."""
    taken = [*taken, ctx.wait_for_signal("go")]
    if taken[-1] != "stop":
        ctx.continue_as_new(taken)
    return taken


def chain(execution: Execution[Any]) -> list[Execution[Any]]:
    return list(Execution.objects.filter(chain_id=execution.chain_id).order_by("run"))


def latest(execution: Execution[Any]) -> Execution[Any]:
    return chain(execution)[-1]


def test_fifty_generations_are_one_chain_with_one_result(durable: DurableKit) -> None:
    execution = durable.run(generations, 1, key="k", last=50)
    assert execution.result() == [50, 50]
    assert ran == list(range(1, 51))
    runs = chain(execution)
    assert [row.run for row in runs] == list(range(1, 51))
    assert [row.status for row in runs] == ["continued"] * 49 + ["completed"]
    assert [row.successor_id for row in runs] == [row.pk for row in runs[1:]] + [None]
    assert [row.input["number"] for row in runs] == list(range(1, 51))
    assert all(len(row.history()) <= 4 for row in runs)
    assert not DispatchHint.objects.exists()


def test_the_run_says_how_it_ended(durable: DurableKit) -> None:
    execution = durable.run(generations, 1, last=2)
    assert (execution.status, execution.output, execution.error) == ("continued", None, None)
    assert execution.is_terminal
    assert execution.finished_at is not None
    end = execution.history()[-1]
    assert (end["kind"], end["status"], end["output"]) == ("continue", "completed", execution.successor_id)


def test_key_tenant_tags_queue_priority_and_correlation_go_along(durable: DurableKit) -> None:
    start = mailbox.using(
        key="k", tenant="acme", tags={"order": 7}, queue="slow", priority=2, correlation_id="c-1", timeout=3600
    ).start([])
    durable.run_until_idle()
    start.signal("go", "more")
    durable.run_until_idle()
    first, second = chain(start)
    carried = (
        *("tenant", "workflow", "version", "key", "chain_id", "queue", "priority", "tags", "correlation_id"),
        *("parent_close", "deadline", "timeout_seconds", "max_recoveries", "epoch", "source_digest"),
    )
    for name in carried:
        assert getattr(second, name) == getattr(first, name), name
    assert second.deadline is not None
    assert (second.recoveries, second.takeovers, second.wake_at, second.forked_from) == (0, "[]", None, None)
    assert second.seed != first.seed
    assert (first.current_key, second.current_key is None) == (None, False)
    assert mailbox.get("k", tenant="acme").pk == second.pk


def test_values_and_charges_do_not_go_along(durable: DurableKit) -> None:
    execution = durable.run(generations, 1, last=2)
    first, second = chain(execution)
    assert (first.value("number"), second.value("number")) == (1, 2)
    assert second.status == "completed"  # a budget of one round each
    assert second.budget_left() == {"rounds": 0}


def test_unread_messages_go_along_in_order_and_taken_ones_stay(durable: DurableKit) -> None:
    execution = mailbox.start([])
    for word in ("one", "two", "three", "stop"):
        execution.signal("go", word)
    execution.signal("other", "nobody reads this")
    durable.run_until_idle()
    assert Execution.objects.locate(execution.pk).result() == ["one", "two", "three", "stop"]
    runs = chain(execution)
    owners = dict(Message.objects.filter(channel="signal:go").values_list("payload", "execution_id"))
    assert owners == {f'"{w}"': r.pk for w, r in zip(["one", "two", "three", "stop"], runs, strict=True)}
    other = Message.objects.get(channel="signal:other")
    assert (other.execution_id, other.consumed_by) == (runs[-1].pk, None)


def test_verbs_on_an_old_run_act_on_the_current_one(durable: DurableKit) -> None:
    old = mailbox.start([])
    old.signal("go", "more")
    durable.run_until_idle()
    old.pause(actor="ann")
    assert [row.status for row in chain(old)] == ["continued", "paused"]
    old.resume(actor="ann")
    durable.run_until_idle()
    old.signal("go", "again")
    durable.run_until_idle()
    assert [row.status for row in chain(old)] == ["continued", "continued", "waiting"]
    assert old.cancel(actor="ann") is True
    assert old.cancel(actor="ann") is False
    assert [row.status for row in chain(old)] == ["continued", "continued", "cancelled"]
    with pytest.raises(InvalidTransition, match=f"{latest(old).pk} is cancelled"):
        old.signal("go", "late")
    with pytest.raises(InvalidTransition):
        old.pause(actor="ann")


def test_a_deduplication_key_holds_over_the_whole_chain(durable: DurableKit) -> None:
    old = mailbox.using(key="k").start([])
    first = old.signal("go", "more", dedup_key="one")
    durable.run_until_idle()
    second = old.signal("go", "again", dedup_key="two")
    durable.run_until_idle()
    current = mailbox.get("k")
    assert current.run == 3
    for run in chain(old):
        assert run.signal("go", "stop", dedup_key="one") == first
        assert run.signal("go", "stop", dedup_key="two") == second
    assert Message.objects.count() == 2
    assert current.status == "waiting"


@workflow("tests.failing_later")
def failing(ctx: Context, number: int) -> int:
    if number == 1:
        ctx.continue_as_new(2)
    return ctx.step(work, number)


def test_retry_of_an_old_run_reopens_the_current_one(durable: DurableKit) -> None:
    durable.fail_step(work)
    execution = durable.run(failing, 1)
    assert [row.status for row in chain(execution)] == ["continued", "failed"]
    execution.retry(actor="ann")
    durable.run_until_idle()
    assert execution.result() == 2


def test_a_start_with_the_key_compares_with_the_chains_first_input(durable: DurableKit) -> None:
    durable.run(generations, 1, key="k", last=2)
    current = generations.get("k")
    assert generations.using(key="k").start(1, last=2).pk == current.pk
    with pytest.raises(ExecutionConflict):
        generations.using(key="k").start(2, last=2)
    again = generations.using(key="k", on_conflict="restart").start(1, last=2)
    assert (again.run, again.chain_id) == (1, again.pk)
    durable.run_until_idle()
    assert [row.run for row in chain(again)] == [1, 2]
    assert generations.get("k").chain_id == again.pk


def test_a_waiting_parent_waits_for_the_successor(durable: DurableKit) -> None:
    execution = mailbox.start([])
    parent = uuid4()
    rows: Any = models.QuerySet(Execution)
    rows.filter(pk=execution.pk).update(parent_id=parent, parent_position=4, parent_item=2, root_id=parent)
    execution.signal("go", "more")
    durable.run_until_idle()
    first, second = chain(execution)
    assert (second.parent_id, second.parent_position, second.parent_item) == (parent, 4, 2)
    assert second.root_id == parent
    assert (first.parent_id, first.parent_position, first.parent_item) == (None, None, None)


def test_the_timeout_runs_over_the_whole_chain(durable: DurableKit) -> None:
    execution = mailbox.using(timeout=3600).start([])
    durable.advance(timedelta(minutes=40))
    execution.signal("go", "more")
    durable.run_until_idle()
    assert latest(execution).deadline - read_now(USING) < timedelta(minutes=20, seconds=5)
    durable.advance(timedelta(minutes=21))
    durable.run_until_idle()
    assert [row.status for row in chain(execution)] == ["continued", "timed_out"]


def test_a_pause_that_was_asked_for_meanwhile_goes_along() -> None:
    execution = generations.start(2, last=2)
    (claimed,) = claim()
    execution.pause(actor="ann")
    successor = Successor(encoded_input=execution.encoded_input, source_digest="")
    assert continue_as_new(claimed, Pages(), successor)
    drain()
    assert [row.status for row in chain(execution)] == ["continued", "paused"]
    execution.resume(actor="ann")
    drain()
    assert [row.status for row in chain(execution)] == ["continued", "completed"]


def test_a_turn_that_lost_its_execution_continues_nothing() -> None:
    execution = generations.start(2, last=2)
    (claimed,) = claim()
    execution.cancel(actor="ann")
    assert not continue_as_new(claimed, Pages(), Successor(encoded_input="{}", source_digest=""))
    assert [row.status for row in chain(execution)] == ["cancelled"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((1, 2, 3), "too many positional arguments"), ((object(),), "UnserializableValue"), ((), "missing a required")],
)
def test_arguments_that_do_not_fit_are_refused_at_the_call(durable: DurableKit, arguments: Any, said: str) -> None:
    wrong[0] = arguments
    execution = durable.run(continuing_with, 1)
    assert execution.result() == "went on"
    assert said in caught[-1]
    assert execution.history() == []


wrong: list[Any] = [()]
caught: list[str] = []


@workflow("tests.continuing_with")
def continuing_with(ctx: Context, number: int, more: int = 0) -> str:
    if number == 2:
        return "second"
    try:
        ctx.continue_as_new(*wrong[0])
    except Exception as error:
        caught.append(f"{type(error).__name__}: {error}")
    return "went on"


@workflow("tests.catching")
def catching(ctx: Context, number: int) -> str:
    if number == 2:
        return "second"
    try:
        ctx.continue_as_new(2)
    except Exception:
        return "caught"


def test_except_exception_does_not_catch_it(durable: DurableKit) -> None:
    assert durable.run(catching, 1).result() == "second"


@workflow("tests.swallowing_the_end")
def swallowing(ctx: Context, number: int) -> str:
    if number == 2:
        return "second"
    try:
        ctx.continue_as_new(2)
    except BaseException:
        ctx.step(work, 99)
    return "never"


def test_what_is_swallowed_all_the_same_changes_nothing_any_more(durable: DurableKit) -> None:
    execution = durable.run(swallowing, 1)
    assert execution.status == "continued"
    assert execution.result() == "second"
    assert ran == []


def test_a_crash_before_it_repeats_nothing_and_makes_one_successor(durable: DurableKit) -> None:
    crash = durable.crash_turn(at_position=2)
    execution = durable.run(generations, 1, last=2)
    assert crash.happened
    assert [row.status for row in chain(execution)] == ["continued", "completed"]


def test_every_prefix_of_a_continued_history_replays(durable: DurableKit) -> None:
    start, *entries = export_history(durable.run(generations, 1, last=2))
    for length in range(len(entries) + 1):
        assert_replays(generations, [start, *entries[:length]])


def test_code_that_no_longer_continues_does_not_replay(durable: DurableKit) -> None:
    history = export_history(durable.run(generations, 1, last=2))
    history[0]["input"]["last"] = 1
    with pytest.raises(AssertionError, match="position 3: the history has continue ''"):
        assert_replays(generations, history)


def test_nobody_has_a_key_that_was_never_given(durable: DurableKit) -> None:
    durable.run(generations, 1, last=2)
    with pytest.raises(ExecutionNotFound):
        generations.get("k")


# -- family and callbacks ----------------------------------------------------------------------------------------


@workflow("tests.parent_of_a_chain")
def parent(ctx: Context, last: int) -> list[Any]:
    return [ctx.child(generations, 1, last=last), ctx.step(work, 99)]


def test_a_parent_gets_the_result_of_the_chains_last_run(durable: DurableKit) -> None:
    execution = durable.run(parent, 3)
    assert execution.result() == [[3, 3], 99]
    runs = list(Execution.objects.filter(workflow="tests.generations").order_by("run"))
    assert [row.status for row in runs] == ["continued", "continued", "completed"]
    assert [row.parent_id for row in runs] == [None, None, execution.pk]
    assert {row.root_id for row in runs} == {execution.pk}


@workflow("tests.parent_of_a_mailbox")
def parent_of_a_mailbox(ctx: Context) -> Any:
    return ctx.child(mailbox.using(key="child"), [])


def test_a_parent_that_is_cancelled_takes_the_chains_current_run_along(durable: DurableKit) -> None:
    execution = durable.run(parent_of_a_mailbox)
    mailbox.signal("child", "go", "more")
    durable.run_until_idle()
    assert mailbox.get("child").run == 2
    execution.cancel(actor="ann")
    durable.run_until_idle()
    assert [row.status for row in chain(mailbox.get("child"))] == ["continued", "cancelled"]


def test_a_cancelled_current_run_is_told_to_the_parent(durable: DurableKit) -> None:
    execution = durable.run(parent_of_a_mailbox)
    first = mailbox.get("child")
    first.signal("go", "more")
    durable.run_until_idle()
    assert first.cancel(actor="ann")
    durable.run_until_idle()
    ended = Execution.objects.locate(execution.pk)
    assert ended.status == "failed"
    assert ended.error["type"] == "django_durable.errors.ExecutionCancelled" or "ChildFailed" in str(ended.error)


@workflow("tests.children_left_behind")
def children_left_behind(ctx: Context, number: int) -> str:
    if number == 1:
        ctx.submit(mailbox.using(key="closed"), [])
        ctx.submit(mailbox.using(key="left alone", parent_close="abandon"), [])
        ctx.step(work, 1)
        ctx.continue_as_new(2)
    ctx.wait_for_signal("go")
    return "second"


def test_children_of_a_run_that_continues_are_closed_as_at_any_end(durable: DurableKit) -> None:
    execution = durable.run(children_left_behind, 1)
    assert mailbox.get("closed").status == "cancelled"
    assert mailbox.get("left alone").status == "waiting"
    assert {entry["status"] for entry in execution.history()} == {"completed", "cancelled"}


@workflow("tests.callback_left_behind")
def callback_left_behind(ctx: Context, number: int) -> str:
    if number == 1:
        tokens.append(ctx.create_callback("paid").token)
        ctx.continue_as_new(2)
    return str(ctx.wait_for_signal("go"))


tokens: list[str] = []


def test_a_callback_is_of_the_run_that_created_it(durable: DurableKit) -> None:
    execution = durable.run(callback_left_behind, 1)
    with pytest.raises(ExecutionClosed):
        complete_callback(tokens[-1], "late")
    execution.signal("go", "on time")
    durable.run_until_idle()
    assert execution.result() == "on time"
