"""Field report B54: a signal that arrives before its run reaches the wait is dropped, and the wait times out.

Whatever the run is doing when it comes, the wait takes it at once: no further turn, nothing that lapses.
"""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Context, Execution, Retry, current_step, step, workflow
from django_durable.runtime.turn import run_turn
from tests.driving import claim, drain, lapse_leases, lease_of, make_due

pytestmark = pytest.mark.django_db


@step
def sends_to_its_own_run() -> None:
    """Stands for a webhook that is faster than the step which caused it."""
    Execution.objects.locate(current_step().execution_id).signal("go", "in a step")


@step(retry=Retry(max_attempts=2, initial=60))
def fails_first() -> None:
    if current_step().attempt == 1:
        raise ValueError("later")


@workflow
def doing(ctx: Context, what: str) -> Any:
    if what == "in a step":
        ctx.step(sends_to_its_own_run)
    elif what == "sleeping":
        ctx.sleep(60)
    elif what == "backing off":
        ctx.step(fails_first)
    elif what == "paused":
        ctx.breakpoint()
    return ctx.wait_for_signal("go", timeout=3600)


def finish_in_one_turn(execution: Execution[Any]) -> Any:
    [claimed] = claim()
    run_turn(claimed, lease_of(claimed))
    row = Execution.objects.locate(execution.pk)
    assert row.status == "completed"
    return row.output


def test_while_it_is_queued() -> None:
    execution = doing.start("")
    execution.signal("go", "queued")
    assert finish_in_one_turn(execution) == "queued"


def test_while_it_is_put_off() -> None:
    execution = doing.using(run_after=3600).start("")
    execution.signal("go", "put off")
    assert drain() == 0
    make_due()
    assert finish_in_one_turn(execution) == "put off"


def test_while_an_earlier_step_runs() -> None:
    assert finish_in_one_turn(doing.start("in a step")) == "in a step"


@pytest.mark.parametrize("what", ["sleeping", "backing off"])
def test_while_it_waits_for_a_time(what: str) -> None:
    execution = doing.start(what)
    drain()
    execution.signal("go", what)
    assert Execution.objects.locate(execution.pk).status == "waiting"
    make_due()
    assert finish_in_one_turn(execution) == what


def test_while_an_operator_holds_it() -> None:
    execution = doing.start("paused")
    drain()
    execution.signal("go", "paused")
    execution.resume(actor="ann")
    assert finish_in_one_turn(execution) == "paused"


def test_while_its_worker_is_dead() -> None:
    execution = doing.start("")
    [_lost] = claim()
    execution.signal("go", "crashed")
    lapse_leases()
    assert finish_in_one_turn(execution) == "crashed"


def test_in_the_order_in_which_they_were_accepted_whatever_their_wait() -> None:
    execution = three.start()
    for number in (1, 2):
        execution.signal("go", number)
    execution.signal("other", "x")
    execution.signal("go", 3)
    assert finish_in_one_turn(execution) == ["x", 1, 2, 3]


@workflow
def three(ctx: Context) -> list[Any]:
    return [ctx.wait_for_signal("other"), *(ctx.wait_for_signal("go") for _ in range(3))]
