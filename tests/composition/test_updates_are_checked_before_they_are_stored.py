"""Updates: a validator runs in the sender, before anything is stored; a reply reaches the sender that waits."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction

from django_durable import (
    Context,
    Execution,
    ExecutionClosed,
    InvalidTransition,
    UnserializableValue,
    UpdateRejected,
    UpdateTimeout,
    step,
    workflow,
)
from django_durable.models import Message
from django_durable.testing import DurableKit
from tests.driving import USING, drain
from tests.services.project import Project

pytest_plugins = ["django_durable.testing.plugin"]

asked: list[Any] = []


@step
def note(text: str) -> str:
    return text


@workflow("composition.cart")
def cart(ctx: Context) -> list[str]:
    items: list[str] = []
    while True:
        change = ctx.wait_for_update("add", timeout=3600)
        items.append(change.payload["item"])
        change.reply({"items": tuple(items)})
        if change.payload.get("last"):
            return items


@cart.validator("add")
def check_add(payload: dict[str, Any], execution: Execution[Any]) -> None:
    asked.append((payload, execution.status))
    payload["seen"] = True
    if "item" not in payload:
        raise UpdateRejected("an item is missing")
    if payload["item"] == "glue":
        raise ValidationError("glue is sold out")


@workflow("composition.silent")
def silent(ctx: Context) -> Any:
    return ctx.wait_for_update("add").payload


@workflow("composition.late_update")
def late(ctx: Context) -> str:
    try:
        ctx.wait_for_update("add", timeout=60)
    except UpdateTimeout:
        return f"late, then {ctx.wait_for_update('add').payload}"
    return "in time"


@workflow("composition.answering_twice")
def answering_twice(ctx: Context) -> str:
    change = ctx.wait_for_update("add")
    change.reply(1)
    try:
        change.reply(2)
    except InvalidTransition as error:
        return str(error)
    return "both"


@workflow("composition.answering_late")
def answering_late(ctx: Context) -> str:
    change = ctx.wait_for_update("add")
    word = ctx.step(note, "worked")
    change.reply(word)
    return ctx.step(note, "after")


def test_accepted_updates_are_taken_in_order_and_answered(durable: DurableKit) -> None:
    execution = durable.run(cart)
    first = execution.send_update("add", {"item": "nails"})
    execution.send_update("add", {"item": "wood", "last": True})
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.output == ["nails", "wood"]
    assert [row["kind"] for row in execution.history()] == ["update", "reply", "update", "reply"]
    assert [row["output"] for row in execution.history()][1] == {"items": ("nails",)}
    assert Message.objects.get(pk=first).encoded_reply is not None


@pytest.mark.parametrize(("payload", "error"), [({}, UpdateRejected), ({"item": "glue"}, ValidationError)])
def test_a_rejected_update_leaves_no_trace(durable: DurableKit, payload: Any, error: type[Exception]) -> None:
    execution = durable.run(cart)
    before = (execution.revision, execution.status)
    with pytest.raises(error):
        execution.send_update("add", payload)
    execution.refresh_from_db()
    assert (execution.revision, execution.status) == before
    assert not Message.objects.exists()


def test_the_validator_sees_a_copy_and_runs_once_for_an_update_and_never_on_replay(durable: DurableKit) -> None:
    asked.clear()
    execution = durable.run(cart)
    payload = {"item": "nails", "last": True}
    execution.send_update("add", payload)
    assert asked == [({"item": "nails", "last": True, "seen": True}, "waiting")]
    durable.run_until_idle()
    durable.assert_replays(cart, durable.export_history(execution))
    assert len(asked) == 1
    assert payload == {"item": "nails", "last": True}


def test_an_update_without_a_validator_is_accepted_also_before_its_wait(durable: DurableKit) -> None:
    execution = silent.start()
    execution.send_update("add", None)
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, execution.output) == ("completed", None)


def test_an_update_after_the_end_is_refused_before_its_validator(durable: DurableKit) -> None:
    execution = durable.run(cart)
    execution.cancel()
    asked.clear()
    with pytest.raises(ExecutionClosed):
        execution.send_update("add", {"item": "nails"})
    assert not asked


def test_a_timed_out_wait_does_not_take_the_next_update(durable: DurableKit) -> None:
    execution = durable.run(late)
    durable.run_until_idle(skip="all")
    execution.send_update("add", "second")
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.output == "late, then second"


def test_an_update_accepted_before_the_deadline_wins_although_it_is_noticed_later(durable: DurableKit) -> None:
    execution = durable.run(late)
    execution.send_update("add", 1)
    durable.advance(3600)
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.output == "in time"


def test_a_second_reply_is_an_error_and_the_first_one_stands(durable: DurableKit) -> None:
    execution = durable.run(answering_twice)
    message = execution.send_update("add", None)
    durable.run_until_idle()
    execution.refresh_from_db()
    assert "answered already" in execution.output
    assert Message.objects.get(pk=message).encoded_reply == "1"


@pytest.mark.parametrize("position", [0, 1, 2, 3])
def test_a_reply_survives_a_crash_at_any_position(durable: DurableKit, position: int) -> None:
    execution = durable.run(answering_late)
    crash = durable.crash_turn(at_position=position)
    message = execution.send_update("add", None)
    durable.run_until_idle()
    assert crash.happened
    execution.refresh_from_db()
    assert (execution.output, Message.objects.get(pk=message).encoded_reply) == ("after", '"worked"')


def test_a_reply_and_its_checkpoint_are_one_write(durable: DurableKit) -> None:
    execution = durable.run(answering_late)
    message = execution.send_update("add", None)
    durable.crash_turn(at_position=3)
    durable.run_until_idle(max_turns=10)
    replies = [row for row in Execution.objects.get(pk=execution.pk).history() if row["kind"] == "reply"]
    assert [row["output"] for row in replies] == ["worked"]
    assert Message.objects.get(pk=message).encoded_reply == '"worked"'


def test_what_cannot_be_stored_is_refused_before_anything_happens(durable: DurableKit) -> None:
    execution = durable.run(silent)
    with pytest.raises(UnserializableValue):
        execution.send_update("add", object())
    with pytest.raises(ValueError, match="update name"):
        execution.send_update("", 1)
    assert not Message.objects.exists()


def test_waiting_for_a_reply_inside_a_transaction_is_refused_and_sends_nothing(durable: DurableKit) -> None:
    execution = durable.run(cart)
    with pytest.raises(InvalidTransition, match="inside a transaction"), transaction.atomic(using=USING):
        execution.send_update("add", {"item": "nails"}, timeout=5)
    assert not Message.objects.exists()


def test_the_sender_gets_the_reply_a_timeout_keeps_the_update(project: Project) -> None:
    execution = cart.start()
    with pytest.raises(TimeoutError):
        execution.send_update("add", {"item": "nails"}, timeout=0.05)
    drain()
    assert Message.objects.get().encoded_reply is not None
    worker = threading.Timer(0.2, drain_in_a_thread)
    worker.start()
    try:
        assert execution.send_update("add", {"item": "wood"}, timeout=60) == {"items": ("nails", "wood")}
    finally:
        worker.join()


def test_a_run_that_ends_without_a_reply_tells_the_sender(project: Project) -> None:
    execution = silent.start()
    worker = threading.Timer(0.2, drain_in_a_thread)
    worker.start()
    try:
        with pytest.raises(ExecutionClosed, match="ended completed, without a reply"):
            execution.send_update("add", 5, timeout=60)
    finally:
        worker.join()
    execution.refresh_from_db()
    assert execution.output == 5


def drain_in_a_thread() -> None:
    from django.db import connections

    try:
        drain()
    finally:
        connections.close_all()
