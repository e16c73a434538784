"""A step elsewhere, its workers and its clocks: what is handed back costs nothing, what nobody picks up fails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from django_durable import Context, Execution, Retry, StepFailed, clock, current_step, step, workflow
from django_durable.conf import config
from django_durable.engine.transitions.step_claim import ClaimedStep
from django_durable.engine.transitions.step_end import settle_step, try_again
from django_durable.errors import ExecutionConflict
from django_durable.models import Checkpoint, DispatchHint
from django_durable.planes import bump_epoch
from django_durable.runtime import sweeps
from django_durable.runtime.claim_run import release
from django_durable.runtime.one import run_hint
from tests.driving import USING, claim, drain, lapse_leases, lease_of, run_claim

pytestmark = pytest.mark.django_db

ran: list[int] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    ran.clear()


@pytest.fixture
def moving_clock() -> Iterator[None]:
    with clock.shifted():
        yield


@step(queue="heavy", queue_timeout=60.0, retry=Retry(max_attempts=2, initial=0.0))
def impatient(number: int) -> int:
    ran.append(current_step().attempt)
    return number


@step(queue="heavy")
def leaves(number: int) -> int:
    ran.append(current_step().attempt)
    raise SystemExit(3)


@workflow("outlives.impatient")
def waits(ctx: Context) -> Any:
    try:
        return ctx.step(impatient, 1)
    except StepFailed as error:
        return error.error_type, error.attempts


@workflow("outlives.mapped")
def mapped(ctx: Context) -> Any:
    batch = ctx.map_batch(impatient, [1, 2], concurrency=1)
    return [len(batch.succeeded), len(batch.failed)]


@workflow("outlives.leaves")
def lethal(ctx: Context) -> int:
    return ctx.step(leaves, 1)


@workflow("outlives.keyed")
def keyed(ctx: Context, number: int) -> int:
    return number


@workflow("outlives.all_taken")
def all_taken(ctx: Context, count: int) -> Any:
    calls = [keyed.using(key=f"taken-{number}").bind(number) for number in range(count)]
    batch = ctx.map_batch(calls, concurrency=2)
    return [len(batch.succeeded), {item.error.error_type for item in batch.failed if item.error is not None}]


def the_step() -> ClaimedStep:
    """Claim the only step that is due."""
    (claimed,) = [one for one in claim() if isinstance(one, ClaimedStep)]
    return claimed


def the_turn() -> None:
    """Run the only turn that is due, before any step is claimed."""
    (claimed,) = claim(1)
    assert not isinstance(claimed, ClaimedStep)
    run_claim(claimed, lease_of(claimed))


def _fail(claimed: ClaimedStep) -> None:
    attempt = claimed.record.attempt + 1
    assert try_again(claimed, {"status": "pending", "attempt": attempt, "begun": attempt}, None)


def test_a_step_that_nobody_picks_up_fails(moving_clock: None) -> None:
    execution = waits.start()
    the_turn()
    for _ in range(2):
        clock.shift(timedelta(seconds=61))
        the_turn()
    done: Execution[Any] = Execution.objects.get(pk=execution.pk)
    assert done.output == ("django_durable.errors.StepTimeout", 2)
    assert ran == []


def test_the_second_attempt_of_a_long_one_fails_too_if_nobody_picks_it_up(moving_clock: None) -> None:
    execution = waits.start()
    the_turn()
    held = the_step()
    clock.shift(timedelta(seconds=61))
    DispatchHint.objects.filter(pk=held.hint_id).update(due_at=clock.read_now(USING) + timedelta(hours=1))
    the_turn()  # it has been picked up in time: the parent goes on waiting
    _fail(held)
    clock.shift(timedelta(seconds=61))
    the_turn()
    done: Execution[Any] = Execution.objects.get(pk=execution.pk)
    assert done.output == ("django_durable.errors.StepTimeout", 2)


def test_an_item_that_had_to_wait_for_its_place_fails_if_nobody_picks_it_up(moving_clock: None) -> None:
    execution = mapped.start()
    the_turn()
    held = the_step()
    clock.shift(timedelta(seconds=61))
    DispatchHint.objects.filter(pk=held.hint_id).update(due_at=clock.read_now(USING) + timedelta(hours=1))
    the_turn()
    ended = {"status": "completed", "attempt": 1, "begun": 1, "encoded_output": "1", "finished_at": held.now()}
    assert settle_step(held, ended)
    for _ in range(2):
        clock.shift(timedelta(seconds=61))
        the_turn()
    assert Execution.objects.get(pk=execution.pk).output == [1, 1]


def test_handing_it_back_at_a_shutdown_is_no_crash(settings: Any) -> None:
    settings.DURABLE = {**settings.DURABLE, "MAX_RECOVERIES": 1}
    execution = waits.start()
    the_turn()
    for _ in range(5):
        held = the_step()
        assert release(held)
    assert Checkpoint.objects.get().recoveries == 0
    drain()
    assert Execution.objects.get(pk=execution.pk).output == 1


def test_lost_workers_are_counted_up_to_the_cap(settings: Any) -> None:
    settings.DURABLE = {**settings.DURABLE, "MAX_RECOVERIES": 2}
    execution = waits.start()
    the_turn()
    starts = 0
    while found := [one for one in claim() if isinstance(one, ClaimedStep)]:
        starts += len(found)
        lapse_leases()
    assert starts == config().max_recoveries + 1
    dead: Execution[Any] = Execution.objects.get(pk=execution.pk)
    assert dead.status == "dead"
    assert dead.error is not None and "lost its worker 3 times" in dead.error["message"]
    assert dead.dead_letters.count() == 1
    assert not DispatchHint.objects.exists()


def test_a_body_that_quits_counts_like_a_crash(settings: Any, moving_clock: None) -> None:
    settings.DURABLE = {**settings.DURABLE, "MAX_RECOVERIES": 2}
    execution = lethal.start()
    for _ in range(6):
        drain()
        clock.shift(timedelta(seconds=90))
    assert ran == [1, 1, 1]
    assert Execution.objects.get(pk=execution.pk).status == "dead"


def test_a_map_of_children_whose_keys_are_taken_ends(moving_clock: None) -> None:
    for number in range(400):
        keyed.using(key=f"taken-{number}").start(number)
    execution = all_taken.start(400)
    drain(most=2000)
    done: Execution[Any] = Execution.objects.get(pk=execution.pk)
    assert done.output == [0, {f"{ExecutionConflict.__module__}.ExecutionConflict"}]


def test_a_bump_of_the_epoch_fences_an_attempt_in_flight_and_it_runs_again() -> None:
    execution = waits.using(tenant="acme").start()
    the_turn()
    held = the_step()
    bump_epoch("acme")
    run_claim(held, lease_of(held))
    assert Checkpoint.objects.get().status == "pending"
    lapse_leases()
    drain()
    assert Execution.objects.get(pk=execution.pk).output == 1
    assert not DispatchHint.objects.exists()


def test_a_lost_hint_of_a_step_comes_back() -> None:
    execution = waits.start()
    the_turn()
    DispatchHint.objects.filter(kind=DispatchHint.Kind.STEP).delete()
    assert sweeps.rebuild_steps(USING) == 1
    assert sweeps.rebuild_steps(USING) == 0
    drain()
    assert Execution.objects.get(pk=execution.pk).output == 1


def test_a_broker_message_runs_a_step_once() -> None:
    execution = waits.start()
    the_turn()
    hint = DispatchHint.objects.get(kind=DispatchHint.Kind.STEP)
    assert run_hint(hint.pk)
    assert not run_hint(hint.pk)
    drain()
    assert ran == [1]
    assert Execution.objects.get(pk=execution.pk).output == 1


@step
def undone() -> None:
    ran.append(-1)


@workflow("outlives.gives_up")
def gives_up(ctx: Context) -> None:
    ctx.compensate(undone)
    ctx.submit(impatient, 1)
    raise ValueError("enough")


def test_a_run_that_is_undone_takes_its_steps_elsewhere_back() -> None:
    execution = gives_up.start()
    the_turn()
    assert Execution.objects.get(pk=execution.pk).status == "compensating"
    assert [hint.kind for hint in DispatchHint.objects.all()] == [DispatchHint.Kind.TURN]
    drain()
    assert ran == [-1]
    assert Execution.objects.get(pk=execution.pk).status == "failed"
    assert not DispatchHint.objects.exists()
