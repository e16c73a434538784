"""The workflows that have something running elsewhere: steps on another queue, futures, maps, children."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django_durable import ChildFailed, Context, workflow
from tests.crash.acts import ELSEWHERE
from tests.crash.flows import busy, effect, flaky, fragile, paid

__all__ = [
    "afar",
    "children_in_line",
    "gathered",
    "mapped",
    "mapped_children",
    "parent",
    "parent_handles",
    "retried_afar",
    "undone_parent",
]

far = effect.using(queue=ELSEWHERE)


@workflow("crash.afar")
def afar(ctx: Context, mark: str) -> list[str]:
    return [ctx.step(effect, f"{mark}-0"), ctx.step(far, f"{mark}-1"), ctx.step(effect, f"{mark}-2")]


@workflow("crash.retried_afar")
def retried_afar(ctx: Context, mark: str) -> list[str]:
    return [ctx.step(flaky.using(queue=ELSEWHERE), f"{mark}-0", 2), ctx.step(effect, f"{mark}-1")]


@workflow("crash.gathered")
def gathered(ctx: Context, mark: str) -> list[str]:
    futures = [ctx.submit(far, f"{mark}-{n}") for n in range(2)]
    return [*ctx.gather(*futures), ctx.step(effect, f"{mark}-2")]


@workflow("crash.paid_apart")
def paid_apart(ctx: Context, mark: str) -> list[str]:
    """A transactional step apart from its turn."""
    return [ctx.submit(paid, f"{mark}-0").result(), ctx.step(effect, f"{mark}-1")]


@workflow("crash.mapped")
def mapped(ctx: Context, mark: str) -> list[str]:
    return ctx.map(far, [f"{mark}-{n}" for n in range(3)], concurrency=2)


@workflow("crash.leaf")
def leaf(ctx: Context, label: str) -> str:
    return ctx.step(busy, label)


@workflow("crash.failing_leaf")
def failing_leaf(ctx: Context, label: str) -> str:
    return ctx.step(fragile, label)


@workflow("crash.waiting_leaf")
def waiting_leaf(ctx: Context, label: str) -> Any:
    ctx.compensate(effect, f"{label}-undo-0")
    done = ctx.step(effect, f"{label}-1")
    return [done, ctx.wait_for_signal("go")]


@workflow("crash.mapped_children")
def mapped_children(ctx: Context, mark: str) -> list[str]:
    return ctx.map(leaf, [f"{mark}-{n}" for n in range(3)], concurrency=2)


@workflow("crash.lined_up", singleton=lambda label: label.rpartition("-")[0])
def lined_up(ctx: Context, label: str) -> str:
    return ctx.step(effect, label)


@workflow("crash.children_in_line")
def children_in_line(ctx: Context, mark: str) -> list[str]:
    return list(ctx.gather(*(ctx.submit(lined_up, f"{mark}-{n}") for n in range(3))))


@workflow("crash.parent_of_one")
def parent(ctx: Context, mark: str) -> list[str]:
    return [ctx.child(leaf, f"{mark}-0"), ctx.step(effect, f"{mark}-1")]


@workflow("crash.parent_handles")
def parent_handles(ctx: Context, mark: str, waits: bool) -> list[str]:
    """Goes on whatever becomes of its child."""
    told = "nothing"
    try:
        ctx.child(waiting_leaf if waits else failing_leaf, f"{mark}-0")
    except ChildFailed as error:
        told = error.status
    return [told, ctx.step(effect, f"{mark}-1")]


@workflow("crash.undone_parent")
def undone_parent(ctx: Context, mark: str) -> None:
    ctx.compensate(effect, f"{mark}-undo-0")
    with suppress(ChildFailed):
        ctx.child(waiting_leaf, f"{mark}-child")
