"""Queues with limits, and the workflows that run in them."""

from __future__ import annotations

from datetime import timedelta

from django_durable import Context, FlowQueue, Singleton, step, workflow

three = FlowQueue("flow.three", concurrency=3)
two = FlowQueue("flow.two", concurrency=2, fair=None)
paced = FlowQueue("flow.paced", rate=(3, timedelta(seconds=60)), fair=None)
newest = FlowQueue("flow.newest", concurrency=1, fair=None, order="lifo")
single = FlowQueue("flow.single", concurrency=1)
open_to_all = FlowQueue("flow.open")


@workflow("flow.one")
def one(ctx: Context, text: str = "") -> str:
    return text


@workflow("flow.napping")
def napping(ctx: Context) -> None:
    ctx.sleep(timedelta(days=1))


@workflow("flow.parent")
def parent(ctx: Context, depth: int) -> int:
    return 0 if depth == 0 else 1 + int(ctx.child(parent, depth - 1))


@step(queue="flow.two")
def elsewhere(number: int) -> int:
    return number


@workflow("flow.many_steps")
def many_steps(ctx: Context, count: int) -> list[int]:
    return list(ctx.map(elsewhere, range(count)))


@workflow("flow.per_order", singleton=lambda order_id, *_rest: f"order:{order_id}")
def per_order(ctx: Context, order_id: int, text: str = "") -> str:
    ctx.wait_for_signal("go")
    return text


@workflow("flow.only_one", singleton=Singleton(depth=1))
def only_one(ctx: Context) -> None:
    ctx.wait_for_signal("go")


@workflow("flow.pair", singleton=Singleton(limit=2))
def pair(ctx: Context) -> None:
    ctx.wait_for_signal("go")


@workflow("flow.rejecting", singleton=Singleton(policy="reject"))
def rejecting(ctx: Context) -> None:
    ctx.wait_for_signal("go")


@workflow("flow.newest_runs", singleton=Singleton(policy="cancel_running"))
def newest_runs(ctx: Context) -> None:
    ctx.wait_for_signal("go")


@workflow("flow.newest_waits", singleton=Singleton(policy="cancel_waiting"))
def newest_waits(ctx: Context) -> None:
    ctx.wait_for_signal("go")


@workflow("flow.failing", singleton=True)
def failing(ctx: Context) -> None:
    ctx.wait_for_signal("go")
    raise ValueError("no")


@workflow("flow.going_on", singleton=True)
def going_on(ctx: Context, left: int) -> None:
    ctx.wait_for_signal("go")
    if left:
        ctx.continue_as_new(left - 1)


@workflow("flow.late", singleton=True, timeout=60)
def late(ctx: Context) -> None:
    ctx.wait_for_signal("go")


@workflow("flow.parent_of_singletons")
def parent_of_singletons(ctx: Context) -> list[str]:
    return list(ctx.gather(*(ctx.submit(quick_singleton, text) for text in "abc")))


@workflow("flow.quick_singleton", singleton=True)
def quick_singleton(ctx: Context, text: str) -> str:
    return text


turns = FlowQueue("flow.turns", concurrency=3)
paced_turns = FlowQueue("flow.paced_turns", concurrency=3, rate=(5, 60))
