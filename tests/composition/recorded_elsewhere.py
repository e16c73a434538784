"""The workflows of the stored histories of what runs elsewhere. Their bodies must keep replaying those files."""

from __future__ import annotations

from typing import Any

from django_durable import ChildFailed, Context, FatalError, StepFailed, step, workflow


@step("recorded.tenfold", queue="recorded.elsewhere")
def tenfold(number: int) -> int:
    if number < 0:
        raise FatalError("negative")
    return number * 10


@workflow("recorded.leaf")
def leaf(ctx: Context, number: int) -> int:
    return ctx.step(tenfold, number) + 1


@workflow("recorded.step_elsewhere")
def step_elsewhere(ctx: Context) -> list[Any]:
    found: list[Any] = [ctx.step(tenfold, 1)]
    try:
        ctx.step(tenfold, -1)
    except StepFailed as error:
        found.append(error.message)
    return found


@workflow("recorded.gather")
def gather(ctx: Context) -> list[Any]:
    futures = [ctx.submit(tenfold, 1), ctx.submit(leaf, 2), ctx.submit(tenfold, -3)]
    first = futures[1].result()
    return [first, *[getattr(one, "message", one) for one in ctx.gather(*futures, return_exceptions=True)]]


@workflow("recorded.map")
def mapped(ctx: Context) -> list[Any]:
    return [ctx.map(tenfold, [3, 1, 2], concurrency=2), ctx.map([tenfold.bind(4), leaf.bind(5)])]


@workflow("recorded.map_batch")
def map_batch(ctx: Context) -> list[Any]:
    batch = ctx.map_batch(tenfold, [1, -2, 3, -4, 5], concurrency=1, tolerated_failures=1)
    ctx.step(tenfold, len(batch.not_started))
    return [batch.results(), [item.index for item in batch.failed], [item.index for item in batch.not_started]]


@workflow("recorded.child")
def child(ctx: Context) -> list[Any]:
    found: list[Any] = [ctx.child(leaf, 1)]
    try:
        ctx.child(leaf, -1)
    except ChildFailed as error:
        found += [error.status, error.error_type, error.message]
    return found
