"""Before a deploy: the histories of what is under way, replayed with the new code, without an effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from django_durable import Context, Execution, InvalidTransition, step, workflow
from django_durable.authoring import registry
from django_durable.models import Checkpoint
from django_durable.testing import DurableKit
from tests.calling import durable as command

pytest_plugins = ["django_durable.testing.plugin"]

ran: list[str] = []


@step
def reserve(number: int) -> int:
    ran.append("reserve")
    return number + 1


@step
def ship(number: int) -> None:
    ran.append("ship")


@workflow("replay.order", version="1")
def order(ctx: Context, number: int) -> None:
    reserved = ctx.step(reserve, number)
    ctx.wait_for_signal("paid")
    ctx.step(ship, reserved)


@workflow("replay.other")
def other(ctx: Context) -> None:
    ctx.wait_for_signal("never")


@workflow("replay.order", version="2")
def order_2(ctx: Context, number: int) -> None:
    ctx.sleep(1)
    ctx.step(ship, ctx.step(reserve, number))


@pytest.fixture
def waiting(durable: DurableKit) -> Iterator[list[Execution[Any]]]:
    started = [order.start(number) for number in range(3)] + [other.start()]
    durable.run_until_idle()
    ran.clear()
    yield started
    assert ran == [], "check-replay ran a step"


def declared_as(monkeypatch: pytest.MonkeyPatch, function: Any) -> None:
    """The deploy: version 1 of the workflow has this body from now on."""
    monkeypatch.setattr(order, "func", function)


def test_the_code_that_wrote_them_replays_them(waiting: list[Execution[Any]]) -> None:
    called = command("check-replay")
    assert (called.code, called.out) == (0, "")
    assert "4 executions replay" in called.err
    assert command("check-replay", "--json").data == {"checked": 4, "findings": []}


def test_a_changed_body_is_found_with_the_position(
    waiting: list[Execution[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    declared_as(monkeypatch, order_2.func)
    before = list(Checkpoint.objects.order_by("pk").values())

    called = command("check-replay", "--json")
    assert called.code == 5
    assert called.data["checked"] == 4
    assert {row["id"] for row in called.data["findings"]} == {str(one.pk) for one in waiting[:3]}
    assert all("position 0" in row["problem"] for row in called.data["findings"])
    assert "3 of 4" in called.error
    assert "position 0" in command("check-replay").out
    assert command("check-replay", "--workflow", "replay.other").code == 0
    assert list(Checkpoint.objects.order_by("pk").values()) == before


def test_the_text_of_the_bodys_own_error_is_a_payload(
    waiting: list[Execution[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(ctx: Context, number: int) -> None:
        raise ValueError(f"secret {number}")

    declared_as(monkeypatch, raises)
    told = command("check-replay")
    assert (told.code, "raised ValueError" in told.out, "secret" in told.out) == (5, True, False)
    assert "raised ValueError: secret 1" in command("check-replay", "--payloads").out
    with pytest.raises(InvalidTransition, match="raised ValueError") as refused:
        waiting[0].fork(from_position=1, version="1", actor="op")
    assert "secret" not in str(refused.value)


def test_another_version_can_be_asked_for(waiting: list[Execution[Any]]) -> None:
    assert command("check-replay", waiting[0].pk).code == 0
    called = command("check-replay", waiting[0].pk, "--workflow-version", "2")
    assert called.code == 5
    assert "position 0" in called.out


def test_a_workflow_that_is_gone_is_a_finding(waiting: list[Execution[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(registry._workflows, (other.name, other.version))
    called = command("check-replay", "--json")
    assert [row["workflow"] for row in called.data["findings"]] == ["replay.other"]


def test_one_that_ended_is_checked_by_its_id_only(waiting: list[Execution[Any]], durable: DurableKit) -> None:
    waiting[0].signal("paid")
    durable.run_until_idle()
    ran.clear()
    assert command("check-replay", "--json").data["checked"] == 3
    assert command("check-replay", waiting[0].pk, "--json").data == {"checked": 1, "findings": []}


def test_one_that_cannot_be_decoded_does_not_hide_the_others(waiting: list[Execution[Any]]) -> None:
    Checkpoint.objects.filter(execution_id=waiting[1].pk, position=0).update(encoded_output="{")
    called = command("check-replay", "--json")
    assert called.code == 5
    assert [row["id"] for row in called.data["findings"]] == [str(waiting[1].pk)]
    assert called.data["checked"] == 4
