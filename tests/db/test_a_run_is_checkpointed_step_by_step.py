"""The ordinary path: start, steps, values, end; every result recorded once and returned as it was stored."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from django_durable import Context, Execution, ExecutionConflict, Retry, StepFailed, step, workflow
from django_durable.models import DeadLetter, DispatchHint
from django_durable.runtime.turn import run_turn
from tests.driving import USING, claim, drain, lapse_leases, lease_of, make_due

pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def double(number: int) -> int:
    ran.append("double")
    return number * 2


@step
def pair(number: int) -> tuple[int, Decimal]:
    return (number, Decimal("1.10"))


@workflow
def two_steps(ctx: Context, number: int) -> dict[str, Any]:
    first = ctx.step(double, number)
    second = ctx.step(double, number=first)
    return {"value": second, "pair": ctx.step(pair, 1)}


def test_a_started_execution_is_pending_with_one_hint() -> None:
    execution = two_steps.start(3)

    assert execution.status == "pending"
    assert execution.is_new
    assert execution.input == {"number": 3}
    hint = DispatchHint.objects.get()
    assert (hint.execution_id, hint.revision, hint.token) == (execution.pk, 1, None)


def test_a_run_ends_completed_with_its_history_and_no_hint() -> None:
    execution = two_steps.start(3)
    assert drain() == 1

    execution = Execution.objects.locate(execution.pk)
    assert execution.status == "completed"
    assert execution.output == {"value": 12, "pair": (1, Decimal("1.10"))}
    assert execution.error is None
    assert [(h["position"], h["kind"], h["status"], h["attempts"]) for h in execution.history()] == [
        (0, "step", "completed", 1),
        (1, "step", "completed", 1),
        (2, "step", "completed", 1),
    ]
    assert execution.history()[0]["name"] == f"{__name__}.double"
    assert not DispatchHint.objects.exists()
    assert ran == ["double", "double"]


def test_a_start_in_a_rolled_back_transaction_leaves_nothing() -> None:
    with pytest.raises(RuntimeError), transaction.atomic(using=USING):
        two_steps.start(1)
        raise RuntimeError
    assert not Execution.objects.exists()
    assert not DispatchHint.objects.exists()


def test_a_body_never_runs_in_the_caller_and_bad_arguments_are_refused_at_once() -> None:
    with pytest.raises(TypeError):
        two_steps.start()
    with pytest.raises(TypeError):
        two_steps.start(1, colour="red")
    two_steps.start(1)
    assert ran == []


def test_the_same_key_returns_the_existing_execution_and_other_input_conflicts() -> None:
    first = two_steps.using(key="k").start(1)
    again = two_steps.using(key="k").start(number=1)
    assert again.pk == first.pk
    assert not again.is_new
    with pytest.raises(ExecutionConflict):
        two_steps.using(key="k").start(2)
    with pytest.raises(ExecutionConflict):
        two_steps.using(key="k", on_conflict="error").start(1)
    with pytest.raises(ExecutionConflict):
        two_steps.using(key="k").start(True)
    assert Execution.objects.count() == 1
    assert two_steps.get("k").pk == first.pk


def test_restart_opens_a_new_chain_once_the_current_one_has_ended() -> None:
    first = two_steps.using(key="k").start(1)
    assert two_steps.using(key="k", on_conflict="restart").start(1).pk == first.pk
    drain()
    second = two_steps.using(key="k", on_conflict="restart").start(5)
    assert second.pk != first.pk
    assert two_steps.get("k").pk == second.pk
    drain()
    assert two_steps.get("k").result() == {"value": 20, "pair": (1, Decimal("1.10"))}


class Broken(Exception):
    pass


attempts: list[int] = []


@step(retry=Retry(max_attempts=3, initial=0.0))
def fails_twice(text: str) -> str:
    from django_durable import current_step

    attempts.append(current_step().attempt)
    if len(attempts) < 3:
        raise Broken(text)
    return "ok"


@step(retry=Retry(max_attempts=2, initial=0.0))
def always_fails() -> None:
    attempts.append(1)
    raise Broken("for good")


@workflow
def retried(ctx: Context) -> str:
    return ctx.step(fails_twice, "no")


@workflow
def handled(ctx: Context) -> str:
    try:
        ctx.step(always_fails)
    except StepFailed as failed:
        assert failed.is_a(Broken)
        assert not failed.is_a(ValueError)
        return f"{failed.error_type} {failed.attempts} {failed.message}"
    return "unreachable"


@workflow
def unhandled(ctx: Context) -> None:
    ctx.step(double, 1)
    ctx.step(always_fails)


def test_a_step_is_retried_by_its_policy_and_its_attempts_are_counted() -> None:
    attempts.clear()
    execution = retried.start()
    drain()
    execution = Execution.objects.locate(execution.pk)
    assert execution.output == "ok"
    assert attempts == [1, 2, 3]
    assert execution.history()[0]["attempts"] == 3


def test_a_final_failure_is_an_outcome_that_the_body_can_handle() -> None:
    execution = handled.start()
    drain()
    assert Execution.objects.locate(execution.pk).output == f"{__name__}.Broken 2 for good"


def test_an_unhandled_failure_ends_the_run_with_a_dead_letter_and_retry_reopens_it_once() -> None:
    execution = unhandled.start()
    drain()
    execution = Execution.objects.locate(execution.pk)
    assert execution.status == "failed"
    assert execution.error is not None
    assert execution.error["type"] == f"{__name__}.Broken"
    assert execution.error["step"] == f"{__name__}.always_fails"
    assert execution.error["attempts"] == 2
    assert execution.output is None
    assert DeadLetter.objects.get().generation == 1
    attempts.clear()

    execution.retry(actor="ann", reason="fixed")
    assert execution.status == "pending"
    assert execution.error is None
    from django_durable import InvalidTransition

    with pytest.raises(InvalidTransition) as refused:
        execution.retry(actor="bob")
    assert refused.value.actor == "ann"
    assert "ann" in str(refused.value)
    drain()
    assert ran == ["double"]
    assert attempts == [1, 1]
    assert DeadLetter.objects.count() == 2


@workflow
def values(ctx: Context) -> dict[str, Any]:
    moment, number, identity = ctx.now(), ctx.random(), ctx.uuid()
    ctx.set_value("progress", 50)
    ctx.set_tags(colour="red", count=3)
    ctx.step(double, 1)
    return {"now": moment, "random": number, "uuid": identity, "again": ctx.uuid()}


def test_recorded_values_are_published_and_survive_a_lost_worker() -> None:
    execution = values.start()
    [claimed] = claim()
    lease = lease_of(claimed)
    run_turn(claimed, lease)
    done = Execution.objects.locate(execution.pk)
    output = done.output
    assert isinstance(output["now"], datetime)
    assert 0 <= output["random"] < 1
    assert isinstance(output["uuid"], UUID)
    assert output["uuid"] != output["again"]
    assert done.value("progress") == 50
    assert done.value("missing", "default") == "default"
    assert done.tags == {"colour": "red", "count": 3}
    assert Execution.objects.tagged(colour="red").get().pk == execution.pk


@workflow
def sleeper(ctx: Context) -> str:
    ctx.step(double, 1)
    ctx.sleep(timedelta(days=2))
    ctx.step(double, 2)
    return "rested"


def test_a_sleep_waits_without_a_worker_and_repeats_no_step() -> None:
    execution = sleeper.start()
    drain()
    waiting = Execution.objects.locate(execution.pk)
    assert waiting.status == "waiting"
    assert waiting.wake_at is not None
    assert waiting.lease_token is None
    hint = DispatchHint.objects.get()
    assert hint.due_at == waiting.wake_at
    assert drain() == 0
    make_due()
    drain()
    assert Execution.objects.locate(execution.pk).output == "rested"
    assert ran == ["double", "double"]


def test_a_lost_worker_is_counted_when_its_lease_lapses_and_another_one_goes_on() -> None:
    execution = sleeper.start()
    [claimed] = claim()
    assert claim() == []
    lapse_leases()
    [second] = claim()
    assert second.id == claimed.id
    assert second.token != claimed.token
    row = Execution.objects.locate(execution.pk)
    assert row.recoveries == 1
    assert '"lease expired"' in row.takeovers
