"""Workflows that change, go on in other runs, and spend: killed like the others."""

from __future__ import annotations

from typing import Any

from django_durable import BudgetExhausted, Context, workflow
from tests.crash.flows import effect, fragile


@workflow("crash.generations")
def generations(ctx: Context, mark: str) -> list[Any]:
    """Three runs, each with one step."""
    ctx.set_value("run", ctx.run)
    done = ctx.step(effect, f"{mark}-0")
    if ctx.run < 3:
        ctx.continue_as_new(mark)
    return [ctx.run, done]


@workflow("crash.mailbox")
def mailbox(ctx: Context, mark: str, taken: tuple[Any, ...] = ()) -> list[Any]:
    """Takes one signal a run, two in all."""
    taken = (*taken, ctx.wait_for_signal("go"))
    ctx.step(effect, f"{mark}-1")
    if len(taken) < 2:
        ctx.continue_as_new(mark, taken=taken)
    return list(taken)


@workflow("crash.patched")
def patched(ctx: Context, mark: str) -> list[Any]:
    ctx.step(effect, f"{mark}-0")
    answers = [ctx.patched("one"), ctx.patched("two")]
    ctx.step(effect, f"{mark}-3")
    return [*answers, ctx.patched("one")]


@workflow("crash.spending", budget={"calls": 2})
def spending(ctx: Context, mark: str) -> list[Any]:
    left: list[Any] = []
    for number in (1, 3, 5):
        try:
            left.append(int(ctx.spend("calls", 1)))
            ctx.step(effect, f"{mark}-{number}")
        except BudgetExhausted:
            left.append("exhausted")
    return left


@workflow("crash.moving", version="1")
def moving_1(ctx: Context, mark: str) -> list[Any]:
    return [ctx.step(effect, f"{mark}-0"), ctx.wait_for_signal("go"), "old"]


@workflow("crash.moving", version="2")
def moving_2(ctx: Context, mark: str) -> list[Any]:
    return [ctx.step(effect, f"{mark}-0"), ctx.wait_for_signal("go"), ctx.step(effect, f"{mark}-2")]


@workflow("crash.undone_chain")
def undone_chain(ctx: Context, mark: str) -> None:
    """Two runs; the second one fails, and both are undone."""
    ctx.compensate(effect, f"{mark}-undo-{ctx.run}")
    ctx.step(effect, f"{mark}-{ctx.run}")
    if ctx.run == 1:
        ctx.continue_as_new(mark)
    ctx.step(fragile, f"{mark}-3")


@workflow("crash.parent")
def parent(ctx: Context, mark: str) -> list[Any]:
    """Waits for a child that goes on in a second run."""
    done = ctx.child(two_runs.using(correlation_id=f"{mark}-child"), mark)
    return [done, ctx.step(effect, f"{mark}-1")]


@workflow("crash.two_runs")
def two_runs(ctx: Context, mark: str) -> str:
    ctx.step(effect, f"{mark}-child-{ctx.run}")
    if ctx.run == 1:
        ctx.continue_as_new(mark)
    return "from the second run"
