"""The sweep behind what waits for an end elsewhere: whatever kept it from being told, it goes on."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import QuerySet

from django_durable import ChildFailed, Context, Execution, step, workflow
from django_durable.models import Checkpoint, DispatchHint
from django_durable.runtime.sweeps import wake_parents
from tests.driving import USING, claim, drain, lease_of, run_claim

pytestmark = pytest.mark.django_db


@step(queue="heavy")
def work(number: int) -> int:
    return number


@workflow("overlooked.child")
def child(ctx: Context) -> Any:
    return ctx.wait_for_signal("go")


@workflow("overlooked.parent")
def parent(ctx: Context) -> str:
    try:
        return str(ctx.child(child))
    except ChildFailed as failed:
        return failed.status


@workflow("overlooked.gathering")
def gathering(ctx: Context) -> tuple[int, ...]:
    return ctx.gather(ctx.submit(work, 1), ctx.submit(work, 2))


def reload(execution: Execution[Any]) -> Execution[Any]:
    return Execution.objects.get(pk=execution.pk)


def test_a_deleted_child_is_an_end_too() -> None:
    execution = parent.start()
    drain()
    assert wake_parents(USING) == 0
    gone = Execution._base_manager.filter(parent_id=execution.pk)
    gone._raw_delete(gone.db)
    DispatchHint.objects.all().delete()
    assert wake_parents(USING) == 1
    drain()
    assert reload(execution).output == "deleted"


def test_results_that_nobody_told_of_are_found() -> None:
    execution = gathering.start()
    [turn] = claim()
    run_claim(turn, lease_of(turn))
    ended = Checkpoint.objects.filter(execution_id=execution.pk, kind="step")
    DispatchHint.objects.all().delete()
    ended.filter(position=0).update(status="completed", encoded_output="1", finished_at=execution.created_at)
    assert wake_parents(USING) == 0  # the other one still runs
    ended.update(status="completed", encoded_output="1", finished_at=execution.created_at)
    assert wake_parents(USING) == 1
    assert wake_parents(USING) == 0
    drain()
    assert reload(execution).output == (1, 1)


def test_one_whose_list_cannot_be_read_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    unreadable, execution = parent.start(), parent.start()
    drain()
    for row in (unreadable, execution):
        gone = Execution._base_manager.filter(parent_id=row.pk)
        gone._raw_delete(gone.db)
    QuerySet(Execution).filter(pk=unreadable.pk).update(awaiting="at:0, but no list")
    assert wake_parents(USING) == 1
    assert str(unreadable.pk) in caplog.text
    drain()
    assert reload(execution).output == "deleted"
