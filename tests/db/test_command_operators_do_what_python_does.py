"""``durable signal``, ``cancel``, ``retry``, ``pause``, ``resume``: the same acts and refusals as in Python."""

from __future__ import annotations

import getpass
import os
from typing import Any

import pytest
from django.contrib.auth.models import User

from django_durable import Context, Execution, step, workflow
from django_durable.models import DeadLetter, Message, OperatorNote
from tests.calling import durable
from tests.driving import drain

pytestmark = pytest.mark.django_db

broken = True


@step
def fragile() -> str:
    if broken:
        raise ValueError("still down")
    return "up"


@workflow("commands.fragile")
def fragile_flow(ctx: Context) -> str:
    return ctx.step(fragile)


@workflow("commands.approve")
def approve(ctx: Context) -> Any:
    return ctx.wait_for_signal("decided")


def waiting() -> Execution[Any]:
    execution = approve.start()
    drain()
    return Execution.objects.locate(execution.pk)


def reread(execution: Execution[Any]) -> Execution[Any]:
    return Execution.objects.locate(execution.pk)


@pytest.mark.parametrize(
    "call",
    [
        ["decided", "--payload", '{"ok": [1, 2.5, null]}'],
        ["--name", "decided", "--payload", '{"ok": [1, 2.5, null]}'],
    ],
    ids=["argument", "option"],
)
def test_a_signal_delivers_its_json_and_prints_the_message_id(call: list[str]) -> None:
    execution = waiting()

    called = durable("signal", execution.pk, *call)
    assert called.out == f"{Message.objects.get().pk}\n"
    drain()
    assert reread(execution).output == {"ok": [1, 2.5, None]}


def test_a_signal_without_payload_delivers_none() -> None:
    execution = waiting()
    assert durable("signal", execution.pk, "decided", "--json").data["message_id"] == Message.objects.get().pk
    drain()
    assert (reread(execution).status, reread(execution).output) == ("completed", None)


def test_a_repeated_dedup_key_prints_the_first_id_also_after_the_end() -> None:
    execution = waiting()
    first = durable("signal", execution.pk, "decided", "--dedup-key", "a")
    drain()
    again = durable("signal", execution.pk, "decided", "--dedup-key", "a")
    assert (again.code, again.out) == (0, first.out)
    assert durable("signal", execution.pk, "decided", "--dedup-key", "b").code == 1


@pytest.mark.parametrize(
    "call",
    [[], ["--name", "a", "b"], ["--name", ""], ["decided", "--payload", "{"], ["decided", "--dedup-key", ""]],
    ids=" ".join,
)
def test_a_signal_that_cannot_be_sent_is_a_usage_error(call: list[str]) -> None:
    execution = waiting()
    assert durable("signal", execution.pk, *call).code == 2
    assert not Message.objects.exists()


@pytest.mark.parametrize("more", [[], ["--no-compensate"]], ids=" ".join)
def test_cancel_ends_the_execution_once(more: list[str]) -> None:
    execution = waiting()

    won = durable("cancel", execution.pk, "--actor", "anna", "--reason", "wrong order", *more)
    lost = durable("cancel", execution.pk, "--actor", "ben", *more)
    assert (won.code, won.out) == (0, "cancelled\n")
    assert lost.code == 1
    assert "there is nothing to cancel" in lost.error
    note = OperatorNote.objects.get()
    assert (note.verb, note.actor, note.reason) == ("cancel", "anna", "wrong order")


def test_retry_reopens_once_and_names_who_did(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = fragile_flow.start()
    drain()
    monkeypatch.setitem(globals(), "broken", False)

    won = durable("retry", execution.pk, "--actor", "anna", "--reason", "the bank is back", "--json")
    lost = durable("retry", execution.pk, "--actor", "ben")
    assert won.data == {"id": str(execution.pk), "status": "pending"}
    assert lost.code == 1
    assert "anna" in lost.error
    assert DeadLetter.objects.get().retried_by == "anna"
    drain()
    assert reread(execution).output == "up"


def test_pause_and_resume_are_attributed_with_their_reason() -> None:
    execution = waiting()

    assert durable("pause", execution.pk, "--actor", "anna", "--reason", "audit").out == "paused\n"
    assert durable("pause", execution.pk, "--actor", "anna").code == 1
    assert durable("resume", execution.pk, "--actor", "ben", "--reason", "done").out == "pending\n"
    assert durable("resume", execution.pk).code == 1
    assert list(OperatorNote.objects.order_by("pk").values_list("verb", "actor", "reason")) == [
        ("pause", "anna", "audit"),
        ("resume", "ben", "done"),
    ]


def test_the_actor_is_the_user_of_the_operating_system_by_default() -> None:
    durable("pause", waiting().pk)
    assert OperatorNote.objects.get().actor == getpass.getuser()


def test_a_user_id_without_a_name_still_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", nameless)
    durable("pause", waiting().pk)
    assert OperatorNote.objects.get().actor == f"uid {os.getuid()}"


def test_call_command_takes_a_user_as_the_actor() -> None:
    durable("pause", waiting().pk, actor=User(username="carla"))
    assert OperatorNote.objects.get().actor == "carla"
