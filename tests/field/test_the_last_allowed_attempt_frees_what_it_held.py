"""Field report B34: the process dies on the last allowed attempt, so nothing is left that could record the failure.

That the execution becomes ``dead`` at the cap, with one dead letter, and holds up nobody, is in
``tests/processes/test_a_killed_worker_loses_nothing.py``. Here: attempts of a step, the key, and a cap of none.
"""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Context, Execution, InvalidTransition, step, workflow
from django_durable.models import DeadLetter, DispatchHint
from tests.driving import claim, drain, lapse_leases
from tests.field.rig.yard import Yard


def test_a_body_that_kills_both_its_attempts_fails_and_the_next_run_of_its_key_goes_on(yard: Yard) -> None:
    execution = yard.start("deadly_twice", "x", key="k")
    for number in (1, 2):
        worker = yard.worker("--concurrency", "1")
        yard.wait_for_effect("begin x", times=number)
        assert worker.wait(within=30) == -9
    yard.worker()
    failed = yard.wait_for_status(execution, "failed")
    assert failed.error is not None
    assert failed.error["type"] == "django_durable.errors.StepInterrupted"
    assert failed.error["attempts"] == 2
    assert yard.begun() == ["x", "x"]
    assert DeadLetter.objects.filter(execution_id=execution.pk).count() == 1
    again = yard.start("deadly_twice", "x", False, key="k", on_conflict="restart")
    assert again.pk != execution.pk
    yard.wait_for_status(again, "completed")


@step
def effect() -> None: ...


@workflow(max_recoveries=0)
def no_second_chance(ctx: Context) -> None:
    ctx.step(effect)


@workflow(max_recoveries=1)
def one_second_chance(ctx: Context) -> None:
    ctx.step(effect)


@pytest.mark.django_db
@pytest.mark.parametrize(("flow", "starts"), [(no_second_chance, 1), (one_second_chance, 2)], ids=["none", "one"])
def test_the_next_pass_after_the_last_lease_buries_it_and_frees_its_key(flow: Any, starts: int) -> None:
    execution = flow.using(key="k").start()
    for _ in range(starts):
        [claimed] = claim()
        assert claimed.id == execution.pk
        assert claim() == []
        lapse_leases()
    behind = flow.using(key="other").start()
    assert [claimed.id for claimed in claim()] == [behind.pk]
    dead = Execution.objects.locate(execution.pk)
    assert dead.status == "dead"
    assert dead.lease_token is None
    assert dead.error is not None
    assert "worker lost" in dead.error["message"]
    assert DeadLetter.objects.count() == 1
    assert not DispatchHint.objects.filter(execution_id=execution.pk).exists()
    assert claim() == []

    again = flow.using(key="k", on_conflict="restart").start()
    assert again.pk != execution.pk
    drain()
    assert Execution.objects.locate(again.pk).status == "completed"
    with pytest.raises(InvalidTransition, match="superseded"):
        dead.retry(actor="ann")
