"""Children: started once, awaited without a worker, told apart by how they ended."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import ChildFailed, Context, Execution, step, workflow
from django_durable.testing import DurableKit

pytest_plugins = ["django_durable.testing.plugin"]

ran: list[str] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    ran.clear()


@step
def note(text: str) -> str:
    ran.append(text)
    return text


@step
def refuse(text: str) -> None:
    raise ValueError(text)


@workflow("family.child")
def child(ctx: Context, name: str) -> str:
    return "done " + ctx.step(note, name)


@workflow("family.failing")
def failing(ctx: Context, name: str) -> None:
    ctx.step(refuse, name)


@workflow("family.waiting")
def waiting(ctx: Context) -> Any:
    return ctx.wait_for_signal("go")


@workflow("family.parent")
def parent(ctx: Context, name: str) -> list[str]:
    first = ctx.child(child, name)
    return [first, ctx.child(child, f"{name} again")]


@workflow("family.handles")
def handles(ctx: Context) -> tuple[str, str, str]:
    try:
        ctx.child(failing, "no")
    except ChildFailed as error:
        assert error.is_a(ValueError)
        return error.status, error.error_type, error.message
    raise AssertionError


@workflow("family.waits")
def waits(ctx: Context) -> Any:
    try:
        return ctx.child(waiting)
    except ChildFailed as error:
        return error.status


def children_of(execution: Execution[Any]) -> list[Execution[Any]]:
    return list(Execution.objects.filter(parent_id=execution.pk).order_by("parent_position", "id"))


def test_a_parent_waits_for_its_children_one_after_the_other(durable: DurableKit) -> None:
    execution = durable.run(parent, "x")
    assert execution.output == ["done x", "done x again"]
    assert ran == ["x", "x again"]
    assert [c.root_id for c in children_of(execution)] == [execution.pk] * 2


def test_a_failure_of_the_child_is_told_with_its_error(durable: DurableKit) -> None:
    assert durable.run(handles).output == ("failed", "builtins.ValueError", "no")


def test_a_cancelled_child_wakes_its_parent(durable: DurableKit) -> None:
    execution = durable.run(waits)
    [only] = children_of(execution)
    assert Execution.objects.get(pk=execution.pk).status == "waiting"
    assert only.cancel(actor="somebody")
    durable.run_until_idle()
    assert Execution.objects.get(pk=execution.pk).output == "cancelled"


def test_a_cancelled_parent_ends_its_children(durable: DurableKit) -> None:
    execution = durable.run(waits)
    assert execution.cancel(actor="somebody")
    assert [c.status for c in children_of(execution)] == ["cancelled"]
