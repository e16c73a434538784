"""How a user's code looks to a type checker. Checked by mypy and never run."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, assert_type
from uuid import UUID

from django_durable import (
    Approval,
    Arrived,
    Batch,
    Call,
    Callback,
    ChildFailed,
    Context,
    Execution,
    Future,
    Ref,
    Retry,
    StepFailed,
    Update,
    complete_callback,
    current_step,
    event,
    fail_callback,
    step,
    update,
    value_type,
    workflow,
)
from django_durable.events import publish


@step
def charge(order_id: int, amount: Decimal) -> dict[str, str]:
    assert_type(current_step().idempotency_key, str)
    assert_type(current_step().attempt, int)
    return {"id": "x"}


@step(retry=Retry(max_attempts=5, initial=1.0, factor=2.0, maximum=60.0, jitter=0.1), timeout=dt.timedelta(minutes=1))
def send(address: str, *, subject: str = "") -> bool:
    return True


@step(transactional=True)
def mark_paid(order_id: int, payment_id: str) -> None: ...


def plain(number: int) -> str:
    return str(number)


@workflow(version="1")
def fulfil(ctx: Context, order_id: int) -> dict[str, object]:
    payment = ctx.step(charge, order_id, Decimal("12.50"))
    assert_type(payment, dict[str, str])
    assert_type(ctx.step(send, "a@example.org", subject="x"), bool)
    assert_type(ctx.step(plain, 3), str)
    assert_type(ctx.now(), dt.datetime)
    assert_type(ctx.random(), float)
    assert_type(ctx.uuid(), UUID)
    assert_type(ctx.id, UUID)
    assert_type(ctx.key, str | None)
    assert_type(ctx.run, int)
    assert_type(ctx.tenant, str)
    assert_type(ctx.is_replaying, bool)
    assert_type(ctx.history_size, int)
    ctx.step(mark_paid, order_id, payment["id"])
    ctx.sleep(dt.timedelta(days=2))
    ctx.sleep(1.5)
    ctx.sleep_until(dt.datetime.now(dt.UTC))
    review = ctx.wait_for_signal("reviewed", timeout=dt.timedelta(days=7))
    assert_type(review, Any)
    ctx.set_value("progress", 50)
    ctx.set_tags(colour="red", count=3, urgent=True)
    with ctx.saga():
        ctx.compensate(send, "a@example.org", subject="sorry")
        ctx.compensate(plain, 3)
        ctx.discard_compensations()
    ctx.breakpoint("look")
    assert_type(ctx.patched("change"), bool)
    assert_type(ctx.spend("tokens", Decimal(1)), Decimal)
    ctx.log.info("half way")
    change = ctx.wait_for_update("add", timeout=3)
    assert_type(change, Update)
    change.reply({"ok": True})
    assert_type(ctx.wait_for_event("sold", {"order": 5}), Any)
    callback = ctx.create_callback("paid")
    assert_type(callback, Callback)
    assert_type(callback.token, str)
    assert_type(callback.url, str)
    assert_type(callback.wait(timeout=3), Any)
    decision = ctx.wait_for_approval("legal", prompt="May it?", timeout=dt.timedelta(days=1))
    assert_type(decision, Approval)
    assert_type(decision.approved, bool)
    assert_type(decision.decided_at, dt.datetime)
    assert_type(ctx.wait_any("go", update("add"), event("sold"), callback, timeout=3), Arrived)
    try:
        ctx.step(send.using(timeout=3), "b@example.org")
    except StepFailed as failed:
        assert_type(failed.step, str)
        assert_type(failed.attempts, int)
        assert_type(failed.is_a(ValueError), bool)
    return {"payment": payment["id"], "review": review}


@workflow
def bare(ctx: Context, name: str, count: int = 1) -> int:
    return count


@workflow("shop.named")
def named(ctx: Context) -> None: ...


@step(queue="heavy", timeout=600, queue_timeout=60, heartbeat_timeout=dt.timedelta(seconds=30))
def render(page: int, *, colour: bool = False) -> bytes:
    current_step().heartbeat({"page": page})
    assert_type(current_step().last_heartbeat, Any)
    return b""


@workflow
def composed(ctx: Context, pages: list[int]) -> int:
    assert_type(ctx.step(render, 1, colour=True), bytes)
    assert_type(render.bind(1, colour=True), Call[bytes])
    assert_type(bare.bind("x", count=2), Call[int])
    first = ctx.submit(render, 1)
    assert_type(first, Future[bytes])
    assert_type(first.result(), bytes)
    assert_type(ctx.submit(bare, "x", count=2), Future[int])
    assert_type(ctx.submit(render.bind(1)), Future[bytes])
    assert_type(ctx.gather(first, ctx.submit(bare, "x"), fail_fast=True), tuple[Any, ...])
    assert_type(ctx.map(render, pages, concurrency=5), list[bytes])
    assert_type(ctx.map(bare, ["x", "y"]), list[int])
    assert_type(ctx.map([render.bind(page, colour=True) for page in pages]), list[bytes])
    batch = ctx.map_batch(render, pages, min_successful=3, tolerated_failures=1)
    assert_type(batch, Batch)
    for item in batch.failed:
        assert_type(item.index, int)
        assert_type(item.error, Exception | None)
    try:
        return ctx.child(bare.using(key="one", parent_close="abandon"), "x", count=2)
    except ChildFailed as failed:
        assert_type(failed.status, str)
        assert_type(failed.is_a(ValueError), bool)
        return 0


@step("named step")
def named_step(number: int) -> int:
    return number


@fulfil.validator("add")
def check_add(payload: Any, execution: Execution[Any]) -> None: ...


assert_type(check_add(1, fulfil.start(1)), None)


@value_type
class Point:
    x: int


assert_type(charge(1, Decimal(1)), dict[str, str])
assert_type(named_step(1), int)
assert_type(Point, type[Point])

execution = fulfil.using(key="order-1", tenant="acme").start(7)
assert_type(execution, Execution[dict[str, object]])
assert_type(execution.result(timeout=3), dict[str, object])
assert_type(execution.output, dict[str, object] | None)
assert_type(execution.input, dict[str, Any])
assert_type(execution.error, dict[str, Any] | None)
assert_type(execution.is_terminal, bool)
assert_type(execution.signal("reviewed", {"ok": True}), int)
assert_type(execution.cancel(actor="ann", reason="x"), bool)
assert_type(execution.history(), list[dict[str, Any]])
assert_type(bare.start("x", 2).result(), int)
assert_type(bare.get("key"), Execution[int])
assert_type(bare.signal("key", "name", 3), int)
assert_type(bare.using(key="k").signal_or_start("name", 1, "x", count=2), Execution[int])
assert_type(execution.decide("legal", approved=True, actor="ann"), bool)
assert_type(execution.send_update("add", {"n": 1}, timeout=1), Any)
assert_type(complete_callback("token", 1), bool)
assert_type(fail_callback("token", "no"), bool)
assert_type(publish("sold", {"order": 5}, tenant="acme", dedup_key="one"), int)
fulfil.on_event("sold", key=lambda sold: f"order-{sold['order']}", args=lambda sold: (sold["order"],))
assert_type(bare.start_many(bare.bind(name) for name in "xyz"), list[Execution[int]])
execution.retry(actor="ann")
execution.pause(actor="ann", reason="wait")
execution.resume()
assert_type(execution.fork(from_position=3, actor="ann", version="2"), Execution[dict[str, object]])
execution.move_to_version("2", actor="ann")
execution.accept_code(actor="ann", reason="a comment")


async def view(number: int) -> dict[str, object]:
    begun = await fulfil.using(key=f"order-{number}").astart(number)
    assert_type(begun, Execution[dict[str, object]])
    assert_type(await begun.asignal("reviewed", None, dedup_key="once"), int)
    assert_type(await begun.acancel(actor="ann"), bool)
    return await begun.aresult(timeout=1.0)


def uses_ref(ref: Ref[Any]) -> None:
    ref.load()


# What a checker must refuse: each of these lines has an ignore, and an unused ignore is an error.
fulfil.start("not an int")  # type: ignore[arg-type]
fulfil.start()  # type: ignore[call-arg]
bare.start("x", colour="red")  # type: ignore[call-arg]
charge("x", Decimal(1))  # type: ignore[arg-type]
bare.using(key="k").start(3)  # type: ignore[arg-type]


@workflow
def wrong(ctx: Context) -> None:
    ctx.step(charge, "x", Decimal(1))  # type: ignore[call-overload]
    ctx.step(charge, 1)  # type: ignore[call-overload]
    ctx.compensate(charge, 1)  # type: ignore[call-overload]
    ctx.sleep("soon")  # type: ignore[arg-type]
    ctx.child(charge, 1, Decimal(1))  # type: ignore[arg-type]
    ctx.child(bare, 3)  # type: ignore[arg-type]
    ctx.submit(bare, 3)  # type: ignore[call-overload]
    ctx.map(render)  # type: ignore[call-overload]
    ctx.map(plain, [1])  # type: ignore[call-overload]
    ctx.submit(plain, 1)  # type: ignore[call-overload]
    render.bind("x")  # type: ignore[arg-type]
    bare.start_many([named.bind()])  # type: ignore[list-item]
