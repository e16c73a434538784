"""The workflows that wait for updates, events, callbacks, approvals, and for whichever comes first."""

from __future__ import annotations

from typing import Any

from django_durable import Context, EventTimeout, event, update, workflow
from tests.crash.flows import HOUR, effect

__all__ = ["answered", "approved", "called_back", "event_timeout", "listening", "whichever"]


@workflow("crash.answered")
def answered(ctx: Context, mark: str) -> list[Any]:
    change = ctx.wait_for_update("add")
    done = ctx.step(effect, f"{mark}-1")
    change.reply([change.payload, "done"])
    return [change.payload, done]


@workflow("crash.listening")
def listening(ctx: Context, mark: str) -> list[Any]:
    """Takes two of three events of one name."""
    first = ctx.wait_for_event("sold", {"mark": mark})
    between = ctx.step(effect, f"{mark}-1")
    return [first["n"], between, ctx.wait_for_event("sold", {"mark": mark})["n"]]


@workflow("crash.event_timeout")
def event_timeout(ctx: Context, mark: str) -> list[Any]:
    try:
        found = ctx.wait_for_event("sold", timeout=HOUR)["n"]
    except EventTimeout:
        found = "late"
    return [found, ctx.step(effect, f"{mark}-1")]


@workflow("crash.called_back")
def called_back(ctx: Context, mark: str) -> list[Any]:
    callback = ctx.create_callback()
    done = ctx.step(effect, f"{mark}-1")
    return [done, callback.wait()]


@workflow("crash.approved")
def approved(ctx: Context, mark: str) -> list[Any]:
    decision = ctx.wait_for_approval("legal", prompt="Go on?", timeout=HOUR)
    return [decision.approved, decision.actor, ctx.step(effect, f"{mark}-1")]


@workflow("crash.whichever")
def whichever(ctx: Context, mark: str) -> list[Any]:
    """Takes three of what comes, whatever it is, and answers updates."""
    found = []
    for _ in range(3):
        arrived = ctx.wait_any("go", update("add"), event("sold", {"mark": mark}), timeout=HOUR)
        found.append(arrived.value)
        if arrived.update is not None:
            arrived.update.reply("thanks")
    return [*found, ctx.step(effect, f"{mark}-last")]
