"""Transactional and at-most-once steps apart from their turn; results that come while the run is paused; fail-fast."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections

from django_durable import Context, Execution, FatalError, Retry, StepFailed, current_step, step, workflow
from django_durable.engine.transitions.step_claim import ClaimedStep
from django_durable.models import Checkpoint, DispatchHint
from testproject.shop.models import Order
from tests.crash.faults import lose_connection
from tests.driving import USING, claim, drain, lapse_leases, lease_of, run_claim

pytestmark = pytest.mark.django_db(transaction=True)

ran: list[int] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    ran.clear()


@step(transactional=True, retry=Retry(max_attempts=2, initial=0.0))
def paid(number: int) -> int:
    ran.append(current_step().attempt)
    Order.objects.using(USING).create(payment_id=str(number))
    if current_step().attempt == 1:
        raise ValueError("refused")
    return number


@step(transactional=True)
def paid_at_once(number: int) -> int:
    ran.append(number)
    Order.objects.using(USING).create(payment_id=str(number))
    return number


@workflow("kinds.pays_at_once")
def pays_at_once(ctx: Context) -> int:
    return ctx.submit(paid_at_once, 8).result()


@step(queue="kinds", at_most_once=True)
def once(number: int) -> int:
    ran.append(current_step().attempt)
    return number


@step(queue="kinds")
def plain(number: int) -> int:
    ran.append(number)
    if number < 0:
        raise FatalError("negative")
    return number


@workflow("kinds.pays")
def pays(ctx: Context) -> int:
    return ctx.submit(paid, 7).result()


@workflow("kinds.once")
def only_once(ctx: Context) -> Any:
    try:
        return ctx.step(once, 7)
    except StepFailed as error:
        return error.error_type.rpartition(".")[2], error.attempts


@workflow("kinds.plain")
def plainly(ctx: Context) -> int:
    return ctx.step(plain, 7)


@workflow("kinds.child")
def child(ctx: Context) -> Any:
    ctx.compensate(plain, 99)
    return ctx.wait_for_signal("never")


@workflow("kinds.fails_fast")
def fails_fast(ctx: Context) -> Any:
    futures = [ctx.submit(child), ctx.submit(plain, -1), ctx.submit(plain, 1)]
    try:
        ctx.gather(*futures, fail_fast=True)
    except StepFailed as error:
        ctx.sleep(0)
        return error.message, [type(e).__name__ for e in ctx.gather(futures[0], return_exceptions=True)]


def the_turn() -> None:
    """Run the only turn that is due, before any step is claimed."""
    (claimed,) = claim(1)
    assert not isinstance(claimed, ClaimedStep)
    run_claim(claimed, lease_of(claimed))


def done(execution: Execution[Any]) -> Any:
    drain()
    assert not DispatchHint.objects.exists()
    return Execution.objects.get(pk=execution.pk).output


def test_a_transactional_step_writes_once_with_its_result() -> None:
    assert done(pays.start()) == 7
    assert (ran, Order.objects.using(USING).count()) == ([1, 2], 1)


def test_a_transactional_step_that_was_taken_over_leaves_nothing() -> None:
    execution = pays.start()
    the_turn()
    (frozen,) = claim()
    lapse_leases()
    (owner,) = claim()
    run_claim(frozen, lease_of(frozen))
    assert not Order.objects.using(USING).exists()
    run_claim(owner, lease_of(owner))
    assert done(execution) == 7
    assert Order.objects.using(USING).count() == 1


def test_a_commit_whose_answer_is_lost_repeats_no_body(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = pays_at_once.start()
    the_turn()
    (held,) = claim()
    connection = connections[USING]
    commit = connection._commit

    def lose_the_answer() -> None:
        monkeypatch.undo()
        commit()
        lose_connection(connection)

    monkeypatch.setattr(connection, "_commit", lose_the_answer)
    run_claim(held, lease_of(held))
    assert done(execution) == 8
    assert (ran, Order.objects.using(USING).count()) == ([8], 1)


def test_an_at_most_once_step_whose_worker_is_lost_is_interrupted() -> None:
    execution = only_once.start()
    the_turn()
    claim()
    lapse_leases()
    assert done(execution) == ("StepInterrupted", 1)
    assert ran == []


def test_a_result_that_comes_during_a_pause_is_kept() -> None:
    execution = plainly.start()
    the_turn()
    execution.pause(actor="ann")
    drain()
    assert Execution.objects.get(pk=execution.pk).status == "paused"
    assert Checkpoint.objects.get().status == "completed"
    execution.resume(actor="ann")
    assert done(execution) == 7
    assert ran == [7]


def test_the_first_failure_calls_the_others_off_and_a_child_is_undone() -> None:
    execution = fails_fast.start()
    output = done(execution)
    assert output is not None
    assert output[0] == "negative"
    assert Execution.objects.get(parent_id=execution.pk).status == "cancelled"
    assert 99 in ran
