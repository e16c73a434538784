"""An operator's retry: results that ran elsewhere are kept, failed children come back with their parent, in either order."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Context, Execution, StepFailed, step, workflow
from django_durable.models import DeadLetter
from django_durable.testing import DurableKit

pytest_plugins = ["django_durable.testing.plugin"]

ran: list[Any] = []
broken: set[str] = set()


@pytest.fixture(autouse=True)
def forget() -> None:
    ran.clear()
    broken.clear()
    broken.add("b")


@step(queue="heavy")
def work(name: str) -> str:
    ran.append(name)
    if name in broken:
        raise ValueError(f"{name} is broken")
    return name.upper()


@workflow("retried.child")
def child(ctx: Context, name: str) -> str:
    return ctx.step(work, name)


@workflow("retried.waiter")
def waiter(ctx: Context) -> Any:
    return ctx.wait_for_signal("go")


@workflow("retried.gathering")
def gathering(ctx: Context) -> Any:
    return ctx.gather(*[ctx.submit(work, name) for name in "abc"])


@workflow("retried.one")
def one(ctx: Context) -> str:
    return ctx.step(work, "a") + ctx.step(work, "b")


@workflow("retried.mapping")
def mapping(ctx: Context) -> list[str]:
    return ctx.map(work, ["a", "b", "c", "d"], concurrency=2)


@workflow("retried.mapping_children")
def mapping_children(ctx: Context) -> list[str]:
    return ctx.map(child, ["a", "b", "c"], concurrency=2)


@workflow("retried.parent")
def parent(ctx: Context) -> str:
    return ctx.child(child, "a") + ctx.child(child, "b")


@workflow("retried.raises")
def raises(ctx: Context) -> Any:
    waiting = ctx.submit(waiter)
    done = ctx.step(work, "a")
    if "body" in broken:
        raise RuntimeError("the body itself")
    return done, waiting.result()


@workflow("retried.handles")
def handles(ctx: Context) -> list[str]:
    seen = []
    for name in ("b", "c"):
        try:
            seen.append(ctx.step(work, name))
        except StepFailed as error:
            seen.append(error.message)
    return seen


def reload(execution: Execution[Any]) -> Execution[Any]:
    return Execution.objects.get(pk=execution.pk)


@pytest.mark.parametrize(
    ("flow", "output", "again"),
    [
        (one, "AB", ["b"]),
        (gathering, ("A", "B", "C"), ["b"]),
        (mapping, ["A", "B", "C", "D"], ["b"]),
        (mapping_children, ["A", "B", "C"], ["b"]),
        (parent, "AB", ["b"]),
    ],
)
def test_only_what_had_failed_runs_again(durable: DurableKit, flow: Any, output: Any, again: list[str]) -> None:
    execution = durable.run(flow)
    assert execution.status == "failed"
    assert sorted(ran) == sorted({*ran, "b"})
    ran.clear()
    broken.clear()
    execution.retry(actor="ann")
    durable.run_until_idle()
    assert reload(execution).output == output
    assert ran == again


@pytest.mark.parametrize("first", ["parent", "child"])
def test_parent_and_child_converge_whichever_is_retried_first(durable: DurableKit, first: str) -> None:
    execution = durable.run(parent)
    [failed] = Execution.objects.filter(parent_id=execution.pk, status="failed")
    broken.clear()
    (execution if first == "parent" else failed).retry(actor="ann")
    if first == "child":
        durable.run_until_idle()
        assert reload(failed).status == "completed"
        assert reload(execution).status == "failed"
        execution.retry(actor="bob")
    durable.run_until_idle()
    assert reload(execution).output == "AB"
    assert reload(failed).output == "B"
    assert DeadLetter.objects.filter(retried_at=None).count() == 0
    assert Execution.objects.filter(parent_id=execution.pk).count() == 2


def test_a_second_failure_opens_the_next_letters(durable: DurableKit) -> None:
    execution = durable.run(parent)
    execution.retry(actor="ann")
    durable.run_until_idle()
    assert reload(execution).status == "failed"
    assert DeadLetter.objects.filter(retried_at=None).count() == 2
    broken.clear()
    execution.retry(actor="ann")
    durable.run_until_idle()
    assert reload(execution).output == "AB"


def test_a_child_that_ended_with_its_parent_is_replaced(durable: DurableKit) -> None:
    broken.update({"body"})
    execution = durable.run(raises)
    assert execution.status == "failed"
    [closed] = Execution.objects.filter(parent_id=execution.pk)
    assert closed.status == "cancelled"
    broken.clear()
    execution.retry(actor="ann")
    durable.run_until_idle()
    [fresh] = Execution.objects.filter(parent_id=execution.pk)
    assert fresh.pk != closed.pk
    fresh.signal("go", 7)
    durable.run_until_idle()
    assert reload(execution).output == ("A", 7)
    assert ran == ["a"]


def test_a_failure_that_the_body_has_handled_stays(durable: DurableKit) -> None:
    assert durable.run(handles).output == ["b is broken", "C"]
