"""``map`` and ``map_batch``: input order, so many at a time, a handful of wake-ups, early stops by rule."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import ChildFailed, Context, Execution, FatalError, StepFailed, current_step, step, workflow
from django_durable.models import Checkpoint, DispatchHint, Join
from django_durable.testing import DurableKit
from tests.driving import claim, drain, lease_of, run_claim

pytest_plugins = ["django_durable.testing.plugin"]

ran: list[Any] = []
most: list[int] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    ran.clear()
    most.clear()


@step
def square(number: int) -> int:
    ran.append(current_step().idempotency_key.partition(":")[2])
    if number < 0:
        raise FatalError(f"negative {number}")
    return number * number


@workflow("mapping.child")
def child(ctx: Context, number: int) -> int:
    return ctx.step(square, number)


@workflow("mapping.squares")
def squares(ctx: Context, numbers: list[int], concurrency: int = 20) -> list[int]:
    return ctx.map(square, numbers, concurrency=concurrency)


@workflow("mapping.children")
def children(ctx: Context, numbers: list[int]) -> list[int]:
    return ctx.map(child, numbers, concurrency=2)


@workflow("mapping.later")
def later(ctx: Context, numbers: list[int]) -> list[int]:
    return ctx.map(child.using(run_after=3600), numbers)


@workflow("mapping.mixed")
def mixed(ctx: Context) -> list[int]:
    return ctx.map([square.bind(3), child.bind(number=4), square.bind(number=5)])


@workflow("mapping.batch")
def batch(ctx: Context, numbers: list[int], rules: dict[str, int]) -> dict[str, Any]:
    found = ctx.map_batch(square, numbers, **rules)
    return {
        "succeeded": [item.index for item in found.succeeded],
        "failed": [item.index for item in found.failed],
        "not_started": [item.index for item in found.not_started],
        "results": found.results(),
        "errors": [str(item.error.message) for item in found.failed if isinstance(item.error, StepFailed)],
    }


@workflow("mapping.handles")
def handles(ctx: Context, numbers: list[int]) -> str:
    try:
        ctx.map(child, numbers)
    except ChildFailed as error:
        return error.message
    return ""


def test_results_come_in_the_order_of_the_input(durable: DurableKit) -> None:
    assert durable.run(squares, [3, 1, 2]).output == [9, 1, 4]
    assert sorted(ran) == ["0.0", "0.1", "0.2"]


def test_nothing_to_do_is_done(durable: DurableKit) -> None:
    assert durable.run(squares, []).output == []


def test_children_and_calls_can_be_mapped(durable: DurableKit) -> None:
    assert durable.run(children, [1, 2, 3, 4, 5]).output == [1, 4, 9, 16, 25]
    assert durable.run(mixed).output == [9, 16, 25]


def test_a_mapped_child_begins_no_sooner_than_it_may(durable: DurableKit) -> None:
    execution = later.start([1, 2])
    durable.run_until_idle(skip=None)
    assert [c.status for c in Execution.objects.filter(parent_id=execution.pk)] == ["pending", "pending"]
    durable.run_until_idle()
    assert [c.output for c in Execution.objects.filter(parent_id=execution.pk).order_by("parent_item")] == [1, 4]


def test_the_first_failure_of_the_input_is_raised_once_all_have_ended(durable: DurableKit) -> None:
    failed = durable.run(squares, [3, -1, -2, 4])
    assert failed.error is not None
    assert failed.error["message"] == "negative -1"
    assert len(ran) == 4
    assert durable.run(handles, [1, -5]).output == "negative -5"


def test_a_batch_tells_what_became_of_each_item(durable: DurableKit) -> None:
    assert durable.run(batch, [1, -1, 2], {}).output == {
        "succeeded": [0, 2],
        "failed": [1],
        "not_started": [],
        "results": [1, 4],
        "errors": ["negative -1"],
    }


def test_a_batch_stops_once_enough_have_succeeded(durable: DurableKit) -> None:
    done = durable.run(batch, [1, 2, 3, 4, 5], {"concurrency": 1, "min_successful": 2})
    assert done.output["succeeded"] == [0, 1]
    assert done.output["not_started"] == [2, 3, 4]


def test_a_batch_stops_once_too_many_have_failed(durable: DurableKit) -> None:
    done = durable.run(batch, [-1, 1, -2, 4, 5], {"concurrency": 1, "tolerated_failures": 1})
    assert done.output["failed"] == [0, 2]
    assert done.output["not_started"] == [3, 4]


@pytest.mark.django_db
def test_no_more_than_so_many_are_under_way() -> None:
    squares.start(list(range(10)), 3)
    [turn] = claim()
    run_claim(turn, lease_of(turn))
    while claims := claim(100):
        most.append(Join.objects.get().in_flight)
        for claimed in claims:
            run_claim(claimed, lease_of(claimed))
    assert max(most) == 3
    assert Execution.objects.get().output == [n * n for n in range(10)]


@pytest.mark.django_db
def test_a_thousand_items_wake_the_parent_a_handful_of_times() -> None:
    execution = squares.start(list(range(1000)), 50)
    drain(most=1100)
    done = Execution.objects.get(pk=execution.pk)
    assert done.output == [n * n for n in range(1000)]
    assert done.revision <= 5
    assert not DispatchHint.objects.exists()
    assert Checkpoint.objects.filter(status="completed").count() == 1001
