"""What runs elsewhere ends while its parent suspends, ends, or is woken by another: nothing is lost, nothing is twice."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
from django.db import connections

from django_durable import Context, Execution, Retry, step, workflow
from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions.await_results import Found, await_results
from django_durable.engine.transitions.ending import complete
from django_durable.engine.transitions.fan_in import at
from django_durable.engine.transitions.leave import Pages
from django_durable.engine.transitions.step_claim import ClaimedStep
from django_durable.engine.transitions.step_end import settle_step, try_again
from django_durable.models import Checkpoint, DispatchHint, Join
from tests.db.racing import USING, Transaction, racers
from tests.driving import claim, drain, lapse_leases, lease_of, make_due, run_claim
from tests.services.project import Project

PARENTS, HANDS = 12, 4


@step(retry=Retry(max_attempts=3, initial=0.0))
def double(number: int) -> int:
    return number * 2


@workflow("fanrace.gathers")
def gathers(ctx: Context, count: int) -> Any:
    return ctx.gather(*[ctx.submit(double, number) for number in range(count)])


@workflow("fanrace.maps")
def maps(ctx: Context, count: int, concurrency: int = 20) -> Any:
    return ctx.map(double, range(count), concurrency=concurrency)


@workflow("fanrace.late")
def late(ctx: Context) -> Any:
    future = ctx.submit(double, 1)
    ctx.sleep(60)
    return future.result()


@workflow("fanrace.child")
def child(ctx: Context, number: int) -> int:
    return ctx.step(double, number)


@workflow("fanrace.parent")
def parent(ctx: Context, number: int) -> int:
    return ctx.child(child, number)


@workflow("fanrace.wide")
def wide(ctx: Context, count: int) -> Any:
    """All of it: children in a map, futures of steps and children."""
    mapped = ctx.map(child, range(count), concurrency=2)
    futures = [ctx.submit(double, number) for number in range(count)]
    return [mapped, list(ctx.gather(*futures, ctx.submit(child, count)))]


def turn() -> None:
    """The only turn that is due."""
    (claimed,) = [one for one in claim() if not isinstance(one, ClaimedStep)]
    run_claim(claimed, lease_of(claimed))


def steps() -> list[ClaimedStep]:
    """Claim every step that is due."""
    found = [one for one in claim() if isinstance(one, ClaimedStep)]
    return sorted(found, key=lambda one: (one.record.position, one.record.item))


def end(claimed: ClaimedStep, output: str = "7") -> bool:
    """Record an attempt's result."""
    attempt = claimed.record.attempt + 1
    changes = {"status": "completed", "attempt": attempt, "begun": attempt, "encoded_output": output}
    return settle_step(claimed, {**changes, "finished_at": claimed.now()})


def await_first(claimed: Claimed) -> Found:
    """What a turn does that waits for position 0."""
    return await_results(
        claimed,
        Pages(),
        [0],
        lambda records: all(record.status != "pending" for record in records),
        awaiting=[[at(0)]],
    )


def slept() -> tuple[Claimed, ClaimedStep]:
    """A turn that has come back from its sleep, and the attempt that it is about to wait for."""
    late.start()
    turn()
    steps()
    make_due()
    lapse_leases()  # what is due again is the step's hint too: it is taken over, and is the same attempt
    back, again = claim()
    assert isinstance(again, ClaimedStep)
    return back, again


def test_two_that_end_at_once_wake_a_gather_once(project: Project) -> None:
    execution = gathers.start(2)
    turn()
    first, second = steps()
    with racers() as (one, other):
        ending = Transaction(one)
        assert one.run(end, first)
        meanwhile = other.begin(end, second)
        if os.environ["TEST_DB"] == "postgres":
            other.wait_for_lock(meanwhile)
        ending.commit()
        assert meanwhile.result(60)
    row: Execution[Any] = Execution.objects.get(pk=execution.pk)
    assert row.status == "pending"
    assert [hint.revision for hint in DispatchHint.objects.all()] == [row.revision]
    assert drain() == 1
    assert Execution.objects.get(pk=execution.pk).output == (7, 7)


def test_two_last_items_of_a_map_wake_it_once(project: Project) -> None:
    execution = maps.start(2)
    turn()
    before = Execution.objects.get(pk=execution.pk).revision
    first, second = steps()
    with racers() as (one, other):
        ending = Transaction(one)
        assert one.run(end, first)
        meanwhile = other.begin(end, second)
        if os.environ["TEST_DB"] == "postgres":
            other.wait_for_lock(meanwhile)
        ending.commit()
        assert meanwhile.result(60)
    assert Join.objects.get().in_flight == 0
    assert Execution.objects.get(pk=execution.pk).revision == before + 1
    assert drain() == 1
    assert Execution.objects.get(pk=execution.pk).output == [7, 7]


def test_a_result_that_commits_late_is_seen_by_the_turn_that_waited_for_it(project: Project) -> None:
    held, attempt = slept()
    with racers() as (worker, waiting):
        ending = Transaction(worker)
        assert worker.run(end, attempt)
        looking = waiting.begin(await_first, held)
        if os.environ["TEST_DB"] == "postgres":
            waiting.wait_for_lock(looking)
        ending.commit()
        records = looking.result(60).records
    assert records is not None
    assert [record.encoded_output for record in records] == ["7"]


def test_a_result_that_is_rolled_back_leaves_the_turn_waiting(project: Project) -> None:
    held, attempt = slept()
    with racers() as (worker, waiting):
        ending = Transaction(worker)
        assert worker.run(end, attempt)
        looking = waiting.begin(await_first, held)
        if os.environ["TEST_DB"] == "postgres":
            waiting.wait_for_lock(looking)
        ending.roll_back()
        assert looking.result(60) == Found(records=None)
        assert worker.run(end, attempt)
    assert drain() == 1
    assert Execution.objects.get().output == 7


def test_a_result_of_an_attempt_that_was_taken_over_settles_nothing(project: Project) -> None:
    execution = gathers.start(1)
    turn()
    (frozen,) = steps()
    lapse_leases()
    (owner,) = steps()
    assert owner.lost
    assert not end(frozen, "1")
    assert not try_again(frozen, {"status": "pending", "attempt": 1, "begun": 1}, None)
    assert end(owner, "2")
    assert not end(frozen, "1")
    drain()
    assert Execution.objects.get(pk=execution.pk).output == (2,)


def test_a_result_of_an_attempt_that_timed_out_does_not_settle_the_next_one(project: Project) -> None:
    execution = gathers.start(1)
    turn()
    (slow,) = steps()
    assert try_again(slow, {"status": "pending", "attempt": 1, "begun": 1}, None)
    assert not end(slow, "1")
    (second,) = steps()
    assert not end(slow, "1")
    assert (second.record.attempt, second.lost) == (1, False)
    assert end(second, "2")
    drain()
    assert Execution.objects.get(pk=execution.pk).output == (2,)
    assert Checkpoint.objects.get(kind="step").attempt == 2


def _child_in_hand() -> tuple[Execution[Any], Claimed]:
    execution = parent.start(4)
    turn()
    (held,) = claim()
    return execution, held


def test_a_childs_end_waits_for_its_parents_cancel_and_is_refused(project: Project) -> None:
    execution, held = _child_in_hand()
    with racers() as (operator, worker):
        cancelling = Transaction(operator)
        assert operator.run(execution.cancel, actor="ann")
        ending = worker.begin(complete, held, Pages(), output="8")
        if os.environ["TEST_DB"] == "postgres":
            worker.wait_for_lock(ending)
        cancelling.commit()
        assert ending.result(60) is False
    assert {row.status for row in Execution.objects.all()} == {"cancelled"}
    assert not DispatchHint.objects.exists()


def test_a_parents_cancel_waits_for_its_childs_end_and_keeps_it(project: Project) -> None:
    execution, held = _child_in_hand()
    with racers() as (operator, worker):
        ending = Transaction(worker)
        assert worker.run(complete, held, Pages(), output="8")
        cancelling = operator.begin(execution.cancel, actor="ann")
        if os.environ["TEST_DB"] == "postgres":
            operator.wait_for_lock(cancelling)
        ending.commit()
        assert cancelling.result(60) is True
    statuses = {row.workflow: row.status for row in Execution.objects.all()}
    assert statuses == {"fanrace.parent": "cancelled", "fanrace.child": "completed"}
    assert Checkpoint.objects.get(kind="child").encoded_output == "8"
    assert not DispatchHint.objects.exists()


def _work(failures: list[BaseException], stop: threading.Event) -> None:
    try:
        while not stop.is_set():
            for claimed in claim(3):
                run_claim(claimed, lease_of(claimed))
    except BaseException as error:
        failures.append(error)
    finally:
        connections[USING].close()


@pytest.mark.parametrize("flow", [gathers, maps, wide], ids=lambda flow: str(flow.name))
def test_many_hands_finish_every_parent(project: Project, flow: Any) -> None:
    """Every parent ends by its last result, without any sweep or lapse of a lease."""
    started = [flow.start(4) for _ in range(PARENTS)]
    failures: list[BaseException] = []
    stop = threading.Event()
    hands = [threading.Thread(target=_work, args=(failures, stop)) for _ in range(HANDS)]
    for hand in hands:
        hand.start()
    try:
        for execution in started:
            execution.result(timeout=60)
    finally:
        stop.set()
        for hand in hands:
            hand.join()
    assert not failures
    assert not DispatchHint.objects.exists()
    assert {execution.cancel(actor="late") for execution in started} == {False}
