"""Cancel, failure, timeout, death and completion of a parent do the same to its descendants, as each was told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from django_durable import Context, Execution, step, workflow
from django_durable.models import DispatchHint
from django_durable.testing import DurableKit
from tests.driving import claim, lease_of, run_claim

pytest_plugins = ["django_durable.testing.plugin"]

undone: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    undone.clear()


@step
def give_back(text: str) -> None:
    undone.append(text)


@step(queue="heavy")
def heavy(number: int) -> int:
    raise AssertionError("nobody serves this queue before the end")


@workflow("descent.leaf")
def leaf(ctx: Context) -> Any:
    ctx.compensate(give_back, "leaf")
    return ctx.wait_for_signal("go")


@workflow("descent.branch")
def branch(ctx: Context) -> Any:
    ctx.submit(leaf)
    ctx.submit(leaf.using(parent_close="abandon"))
    return ctx.wait_for_signal("go")


@workflow("descent.trunk", timeout=timedelta(days=1), max_recoveries=0)
def trunk(ctx: Context) -> Any:
    ctx.submit(branch)
    ctx.submit(branch.using(parent_close="abandon"))
    answer = ctx.wait_for_signal("go")
    if answer == "fail":
        raise KeyError(answer)
    return answer


def cancel(durable: DurableKit, one: Execution[Any]) -> None:
    assert one.cancel(actor="ann")


def complete(durable: DurableKit, one: Execution[Any]) -> None:
    one.signal("go")


def fail(durable: DurableKit, one: Execution[Any]) -> None:
    one.signal("go", "fail")


def let_time_pass(durable: DurableKit, one: Execution[Any]) -> None:
    durable.advance(timedelta(days=2))


def kill(durable: DurableKit, one: Execution[Any]) -> None:
    durable.crash_turn(at_position=2)
    one.signal("go")


ENDS: list[tuple[Callable[[DurableKit, Execution[Any]], None], str]] = [
    (cancel, "cancelled"),
    (complete, "completed"),
    (fail, "failed"),
    (let_time_pass, "timed_out"),
    (kill, "dead"),
]


@pytest.mark.parametrize(("act", "status"), ENDS, ids=[status for _act, status in ENDS])
def test_those_that_were_to_end_have_ended_and_the_others_live_on(
    durable: DurableKit, act: Callable[[DurableKit, Execution[Any]], None], status: str
) -> None:
    execution = durable.run(trunk)
    act(durable, execution)
    durable.run_until_idle(skip=None)
    execution.refresh_from_db()
    assert execution.status == status
    closed, left = Execution.objects.filter(parent_id=execution.pk).order_by("parent_position")
    assert (closed.status, left.status) == ("cancelled", "waiting")
    assert leaves_of(closed) == ["cancelled", "waiting"]
    assert leaves_of(left) == ["waiting", "waiting"]
    assert undone == ["leaf"]


@pytest.mark.parametrize("compensate", [True, False])
def test_a_cancel_without_undo_is_the_parents_own_affair(durable: DurableKit, compensate: bool) -> None:
    execution = durable.run(trunk)
    assert execution.cancel(actor="ann", compensate=compensate)
    durable.run_until_idle(skip=None)
    assert undone == ["leaf"]
    assert not Execution.objects.filter(status="compensating").exists()


def test_a_step_elsewhere_that_nobody_has_picked_up_never_starts(durable: DurableKit) -> None:
    execution = spreads.start()
    [turn] = claim()
    run_claim(turn, lease_of(turn))
    assert DispatchHint.objects.filter(kind=DispatchHint.Kind.STEP).count() == 3
    assert execution.cancel(actor="ann")
    assert not DispatchHint.objects.filter(kind=DispatchHint.Kind.STEP).exists()
    durable.run_until_idle()
    assert {entry["status"] for entry in execution.history()} == {"cancelled"}


@workflow("descent.spreads")
def spreads(ctx: Context) -> Any:
    future = ctx.submit(heavy, 0)
    return ctx.map(heavy, [1, 2, 3], concurrency=2), future.result()


def leaves_of(parent: Execution[Any]) -> list[str]:
    rows = Execution.objects.filter(parent_id=parent.pk).order_by("parent_position")
    return list(rows.values_list("status", flat=True))
