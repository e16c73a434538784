"""The workflows of the stored histories about what runs elsewhere. Their bodies must keep replaying those files."""

from __future__ import annotations

from typing import Any

from django_durable import ChildFailed, Context, StepFailed, step, workflow


@step("recorded.heavy", queue="heavy")
def heavy(number: int) -> int:
    if number < 0:
        raise ValueError(f"negative {number}")
    return number * 2


@step("recorded.light")
def light(number: int) -> int:
    return number + 1


@workflow("recorded.leaf")
def leaf(ctx: Context, number: int) -> int:
    return ctx.step(heavy, number)


@workflow("recorded.elsewhere")
def elsewhere(ctx: Context) -> list[Any]:
    results: list[Any] = [ctx.step(heavy, 1)]
    try:
        ctx.step(heavy, -1)
    except StepFailed as error:
        results.append((error.message, error.attempts, error.is_a(ValueError)))
    return [*results, ctx.step(light, 2)]


@workflow("recorded.futures")
def futures(ctx: Context) -> list[Any]:
    first, second = ctx.submit(heavy, 1), ctx.submit(leaf, 2)
    third = ctx.submit(light.bind(3))
    failing = ctx.submit(heavy, -4)
    results: list[Any] = [third.result(), *ctx.gather(second, first)]
    try:
        ctx.gather(first, failing, fail_fast=True)
    except StepFailed as error:
        results.append(error.message)
    [kept] = ctx.gather(failing, return_exceptions=True)
    return [*results, kept.message, ctx.wait_any(first, "never").value]


@workflow("recorded.children")
def children(ctx: Context) -> list[Any]:
    results: list[Any] = [ctx.child(leaf, 5)]
    try:
        ctx.child(leaf.using(key="failing"), -5)
    except ChildFailed as error:
        results.append((error.workflow, error.status, error.message, error.is_a(ValueError)))
    return [*results, ctx.step(light, 1)]


@workflow("recorded.maps")
def maps(ctx: Context) -> list[Any]:
    results: list[Any] = [ctx.map(heavy, [1, 2, 3], concurrency=2), ctx.map(leaf, [4]), ctx.map(light, [])]
    batch = ctx.map_batch([heavy.bind(1), leaf.bind(-2), light.bind(number=3)], concurrency=1, tolerated_failures=0)
    results.append([[item.index for item in items] for items in (batch.succeeded, batch.failed, batch.not_started)])
    return [*results, ctx.step(light, 1)]
