"""Whatever ends a child, its parent is woken and told how; by the child's end itself, not by a sweep."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from django_durable import ChildFailed, Context, Execution, step, workflow
from django_durable.models import DispatchHint
from django_durable.testing import DurableKit

pytest_plugins = ["django_durable.testing.plugin"]

gone: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    gone.clear()


@step
def give_back(text: str) -> None:
    gone.append(text)


@workflow("ends.child", timeout=timedelta(days=1), max_recoveries=0)
def child(ctx: Context, how: str) -> Any:
    if how == "undone":
        ctx.compensate(give_back, how)
    if how == "again":
        ctx.continue_as_new("once more")
    answer = ctx.wait_for_signal("go")
    if how == "fail":
        raise KeyError("as asked")
    return answer


@workflow("ends.parent")
def parent(ctx: Context, how: str, key: str | None = None) -> Any:
    try:
        return ctx.child(child.using(key=key), how)
    except ChildFailed as failed:
        return failed.status


@workflow("ends.of_many")
def of_many(ctx: Context, hows: list[str]) -> Any:
    batch = ctx.map_batch(child, hows)
    return batch.results(), [getattr(item.error, "status", "") for item in batch.failed]


@workflow("ends.future")
def with_future(ctx: Context, how: str) -> Any:
    future = ctx.submit(child, how)
    [result] = ctx.gather(future, return_exceptions=True)
    return getattr(result, "status", result)


@workflow("ends.later")
def later(ctx: Context, how: str) -> Any:
    future = ctx.submit(child, how)
    ctx.wait_for_signal("look")
    try:
        return future.result()
    except ChildFailed as failed:
        return failed.status


def say_go(durable: DurableKit, one: Execution[Any]) -> None:
    one.signal("go", "went")


def cancel(durable: DurableKit, one: Execution[Any]) -> None:
    assert one.cancel(actor="ann")


def cancel_without_undo(durable: DurableKit, one: Execution[Any]) -> None:
    assert one.cancel(actor="ann", compensate=False)


def let_time_pass(durable: DurableKit, one: Execution[Any]) -> None:
    durable.advance(timedelta(days=2))


def kill(durable: DurableKit, one: Execution[Any]) -> None:
    durable.crash_turn(at_position=0)
    one.signal("go", "went")


ENDS: list[tuple[str, Callable[[DurableKit, Execution[Any]], None], str]] = [
    ("answer", say_go, "went"),
    ("again", say_go, "went"),
    ("fail", say_go, "failed"),
    ("answer", cancel, "cancelled"),
    ("undone", cancel, "cancelled"),
    ("undone", cancel_without_undo, "cancelled"),
    ("answer", let_time_pass, "timed_out"),
    ("undone", let_time_pass, "timed_out"),
    ("answer", kill, "dead"),
]
NAMES = [f"{how}-{act.__name__}" for how, act, _told in ENDS]


@pytest.mark.parametrize(("how", "act", "told"), ENDS, ids=NAMES)
@pytest.mark.parametrize("flow", [parent, with_future], ids=["child", "future"])
def test_the_parent_is_told_how_it_ended(
    durable: DurableKit, flow: Any, how: str, act: Callable[[DurableKit, Execution[Any]], None], told: str
) -> None:
    execution = durable.run(flow, how)
    assert execution.status == "waiting"
    one = Execution.objects.filter(parent_id=execution.pk).get()
    act(durable, one)
    durable.run_until_idle(skip=None)
    execution.refresh_from_db()
    assert execution.output == told
    assert not DispatchHint.objects.exists()


def test_the_items_of_a_map_are_told_apart(durable: DurableKit) -> None:
    execution = durable.run(of_many, [how for how, _act, _told in ENDS])
    ones = list(Execution.objects.filter(parent_id=execution.pk).order_by("parent_item"))
    assert len(ones) == len(ENDS)
    for one, (_how, act, told) in zip(ones, ENDS, strict=True):
        if act is not let_time_pass:
            act(durable, one)
            durable.run_until_idle(skip=None)
            assert Execution.objects.get(pk=one.pk).status == ("completed" if told == "went" else told)
    durable.advance(timedelta(days=2))
    durable.run_until_idle(skip=None)
    execution.refresh_from_db()
    told = [told for _how, _act, told in ENDS]
    assert execution.output == (["went"] * told.count("went"), [one for one in told if one != "went"])


def test_a_child_that_could_not_start_has_ended(durable: DurableKit) -> None:
    other = child.using(key="taken").start("answer")
    execution = parent.start("answer", "taken")
    durable.run_until_idle(skip=None)
    execution.refresh_from_db()
    assert execution.output == "failed"
    assert Execution.objects.get(pk=other.pk).status == "waiting"


def test_an_end_that_nobody_waits_for_yet_is_there_when_somebody_does(durable: DurableKit) -> None:
    execution = durable.run(later, "answer")
    one = Execution.objects.get(parent_id=execution.pk)
    assert one.cancel(actor="ann")
    durable.run_until_idle(skip=None)
    assert Execution.objects.get(pk=execution.pk).status == "waiting"
    execution.signal("look")
    durable.run_until_idle(skip=None)
    execution.refresh_from_db()
    assert execution.output == "cancelled"
