"""Workflows that REST may start, and one that it may not."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django_durable import Context, Execution, UpdateRejected, step, workflow
from tests.driving import drain

state = {"broken": True}


class CardRefused(Exception):
    """What the step raises."""


@step
def charge(value: Any) -> Any:
    if state["broken"]:
        raise CardRefused(f"refused {value}")
    return value


@step
def undo(value: Any) -> None: ...


@workflow("rest.job", rest=True)
def job(ctx: Context, what: str = "", value: Any = 0) -> Any:
    if what == "fail":
        ctx.step(charge, value)
    if what == "wait":
        return ctx.wait_for_signal("go")
    if what == "undo":
        ctx.compensate(undo, value)
        return ctx.wait_for_signal("go")
    if what == "break":
        ctx.breakpoint("look")
    if what == "ask":
        decision = ctx.wait_for_approval("ok", prompt="spend?", data={"amount": value})
        return [decision.approved, decision.actor, decision.reason]
    if what == "update":
        update = ctx.wait_for_update("add")
        update.reply(Decimal(update.payload) + 1)
        return "added"
    if what == "event":
        return ctx.wait_for_event("paid")
    if what == "callback":
        callback = ctx.create_callback("bank")
        ctx.set_value("token", callback.token)
        return callback.wait()
    if what == "child":
        return ctx.child(child, value)
    if what == "publish":
        ctx.set_value("pro/gress", {"done": Decimal("0.50")})
        for number in range(5):
            ctx.step(note, number)
        return ctx.wait_for_signal("go")
    return value


@job.validator("add")
def check_addition(payload: Any, execution: Execution[Any]) -> None:
    if payload == "no":
        raise UpdateRejected("no is no number")


@step
def note(number: int) -> int:
    return number


@workflow("rest.child", rest=True)
def child(ctx: Context, value: Any) -> Any:
    return ctx.wait_for_signal("go")


@workflow("rest.order", rest=True)
def order(ctx: Context, amount: Decimal, at: datetime | None = None, pause: timedelta = timedelta(0)) -> str:
    return f"{amount!r} {at!r} {pause!r}"


@workflow("rest.hidden")
def hidden(ctx: Context) -> None: ...


def run(what: str = "", value: Any = 0, **using: Any) -> Execution[Any]:
    """Started and driven as far as it goes."""
    execution = job.using(**using).start(what, value)
    drain()
    return Execution.objects.locate(execution.pk)
