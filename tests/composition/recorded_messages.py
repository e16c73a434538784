"""The workflows of the stored histories of messages. Their bodies must keep replaying those files."""

from __future__ import annotations

from typing import Any

from django_durable import (
    ApprovalTimeout,
    CallbackFailed,
    CallbackTimeout,
    Context,
    EventTimeout,
    UpdateTimeout,
    WaitTimeout,
    event,
    step,
    update,
    workflow,
)

__all__ = ["approvals", "callbacks", "events", "first_of_all", "updates"]


@step("histories.hand_out")
def hand_out(*tokens: str) -> int:
    return len(tokens)


@workflow("histories.updates")
def updates(ctx: Context) -> list[Any]:
    change = ctx.wait_for_update("add", timeout=60)
    change.reply(("so far", change.payload))
    try:
        ctx.wait_for_update("add", timeout=60)
    except UpdateTimeout:
        return [change.payload, "late"]
    return ["never"]


@workflow("histories.events")
def events(ctx: Context) -> list[Any]:
    found = ctx.wait_for_event("sold", {"order": 5}, timeout=60)
    try:
        ctx.wait_for_event("sold", timeout=60)
    except EventTimeout:
        return [found["amount"], "late"]
    return ["never"]


@workflow("histories.callbacks")
def callbacks(ctx: Context) -> list[Any]:
    done, failed, late = ctx.create_callback("done"), ctx.create_callback("failed"), ctx.create_callback()
    ctx.step(hand_out, done.token, failed.token, late.token)
    found: list[Any] = [done.wait(timeout=60)]
    try:
        failed.wait(timeout=60)
    except CallbackFailed as error:
        found.append(error.message)
    try:
        late.wait(timeout=60)
    except CallbackTimeout:
        found.append("late")
    return found


@workflow("histories.approvals")
def approvals(ctx: Context) -> list[Any]:
    decision = ctx.wait_for_approval("legal", prompt="May it?", data={"n": 1}, timeout=60)
    try:
        ctx.wait_for_approval("legal", timeout=60)
    except ApprovalTimeout:
        return [decision.approved, decision.actor, decision.reason, decision.data, "late"]
    return ["never"]


@workflow("histories.first_of_all")
def first_of_all(ctx: Context) -> list[Any]:
    callback = ctx.create_callback("paid")
    ctx.step(hand_out, callback.token)
    found = []
    for _ in range(4):
        arrived = ctx.wait_any("go", update("add"), event("sold", {"order": 5}), callback, timeout=60)
        found.append(arrived.value)
        if arrived.update is not None:
            arrived.update.reply("thanks")
    try:
        ctx.wait_any("stop", event("sold"), timeout=60)
    except WaitTimeout:
        return [*found, "late"]
    return ["never"]
