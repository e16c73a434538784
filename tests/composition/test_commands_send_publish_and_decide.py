"""``durable update``, ``publish``, ``decide`` and ``approvals`` do what Python does, with exit codes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connections

from django_durable import Context, Execution, UpdateRejected, workflow
from django_durable.models import EventRow, Message, OperatorNote
from django_durable.operators.unread import unread_messages
from django_durable.testing import DurableKit
from tests.calling import durable as call
from tests.driving import drain
from tests.services.project import Project

pytest_plugins = ["django_durable.testing.plugin"]


@workflow("composition.commanded")
def commanded(ctx: Context) -> list[Any]:
    found = [ctx.wait_for_update("add").payload, ctx.wait_for_event("sold", {"order": 5})["n"]]
    decision = ctx.wait_for_approval("legal", prompt="May it?", data={"n": 1}, timeout=3600)
    return [*found, decision.approved, decision.actor, decision.reason, decision.data]


@commanded.validator("add")
def check(payload: Any, execution: Execution[Any]) -> None:
    if payload == "no":
        raise UpdateRejected("not that")
    if payload == "never":
        raise ValidationError("never that")
    if payload == "bug":
        raise ValueError("a mistake in the validator")


def key_of(payload: Any) -> str:
    return f"order-{payload['order']}"


@workflow("composition.subscribed")
def subscribed(ctx: Context, order: int) -> None: ...


subscribed.on_event("subscribed.order", key=key_of, args=lambda payload: (int(payload["order"]),))


def test_the_whole_way_by_commands(durable: DurableKit) -> None:
    execution = durable.run(commanded)
    sent = call("update", execution.pk, "add", payload='{"a": 1}', json=True)
    assert (sent.code, sent.data["message_id"]) == (0, Message.objects.get().pk)
    published = call("publish", "sold", payload='{"order": 5, "n": 2}', dedup_key="one")
    assert (published.code, published.out.strip()) == (0, str(EventRow.objects.get().pk))
    assert call("publish", "sold", payload="6", dedup_key="one").out == published.out
    durable.run_until_idle()
    [asked] = call("approvals", json=True).data
    assert (asked["execution_id"], asked["name"], asked["workflow"]) == (
        str(execution.pk),
        "legal",
        "composition.commanded",
    )
    assert (asked["prompt"], asked["data"]) == ("str, 7 characters", "dict, 1 key, 7 bytes")
    [asked] = call("approvals", json=True, payloads=True).data
    assert (asked["prompt"], asked["data"]) == ("May it?", {"n": 1})
    assert "legal" in call("approvals").out
    decided = call("decide", execution.pk, "legal", approve=True, actor="ada", reason="fine", data="[1]")
    assert (decided.code, decided.out) == (0, "pending\n")
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.output == [{"a": 1}, 2, True, "ada", "fine", [1]]
    assert (OperatorNote.objects.get().verb, call("approvals", json=True).data) == ("approve", [])


@workflow("composition.commanded_reply")
def replying(ctx: Context) -> None:
    ctx.wait_for_update("add").reply({"told": "secret"})


def test_a_reply_is_shown_in_full_only_with_payloads(project: Project) -> None:
    for shown, options in (('{"told": "secret"}', {"payloads": True}), ("dict, 1 key", {})):
        execution = replying.start()
        worker = threading.Timer(0.2, drain_apart)
        worker.start()
        answered = call("update", execution.pk, "add", timeout=60, **options)
        worker.join()
        assert answered.code == 0
        assert shown in answered.out.replace("'", '"')
    assert call("update", replying.start().pk, "add", timeout=0).code == 1


def drain_apart() -> None:
    try:
        drain()
    finally:
        connections.close_all()


def test_refusals_have_their_codes_and_leave_nothing(durable: DurableKit) -> None:
    execution = durable.run(commanded)
    for payload in ('"no"', '"never"'):
        refused = call("update", execution.pk, "add", payload=payload)
        assert (refused.code, refused.error[-4:]) == (1, "that")
    assert call("update", execution.pk, "").code == 2
    assert call("update", execution.pk, "add", timeout="soon").code == 2
    assert call("update", execution.pk, "add", timeout="nan").code == 2
    assert call("publish", "").code == 2
    assert call("decide", execution.pk, "legal").code == 2
    assert call("decide", execution.pk, "legal", approve=True).code == 1
    assert not Message.objects.exists()
    assert not EventRow.objects.exists()


def test_a_second_decision_is_refused(durable: DurableKit) -> None:
    execution = commanded.start()
    execution.send_update("add", 1)
    call("publish", "sold", payload={"order": 5, "n": 2})
    durable.run_until_idle()
    assert call("decide", execution.pk, "legal", reject=True).code == 0
    again = call("decide", execution.pk, "legal", approve=True)
    assert (again.code, "decided" in again.error) == (1, True)


def test_pages_of_approvals_go_on_after_the_last(durable: DurableKit) -> None:
    for _ in range(3):
        execution = commanded.start()
        execution.send_update("add", 1)
    call("publish", "sold", payload={"order": 5, "n": 2})
    durable.run_until_idle()
    first = call("approvals", limit=2, json=True)
    assert len(first.data) == 2
    assert f"--after {first.data[-1]['id']}" in first.err
    assert len(call("approvals", after=first.data[-1]["id"], json=True).data) == 1


@pytest.mark.parametrize("ended", [False, True])
def test_show_lists_what_nobody_has_read(durable: DurableKit, ended: bool) -> None:
    execution = durable.run(commanded)
    execution.signal("unasked", 1)
    if ended:
        execution.cancel()
    [unread] = unread_messages(execution)
    assert unread["channel"] == "signal:unasked"
    assert [row["id"] for row in call("show", execution.pk, json=True).data["unread"]] == [unread["id"]]


def test_a_bug_in_code_of_the_project_is_no_usage_error(durable: DurableKit) -> None:
    execution = durable.run(commanded)
    with pytest.raises(ValueError, match="a mistake in the validator"):
        call("update", execution.pk, "add", payload='"bug"')
    with pytest.raises(ValueError, match="invalid literal"):
        call("publish", "subscribed.order", payload='{"order": "five"}')
    assert not Message.objects.exists()
    assert not EventRow.objects.exists()


@pytest.mark.parametrize("verb", ["signal", "update", "decide"])
def test_a_name_that_is_none_is_a_usage_error(durable: DurableKit, verb: str) -> None:
    execution = durable.run(commanded)
    for name in ("", "x" * 300):
        wrong = call(verb, execution.pk, name, **({"approve": True} if verb == "decide" else {}))
        assert (wrong.code, "name" in wrong.error) == (2, True)
    assert call("publish", "").code == 2
