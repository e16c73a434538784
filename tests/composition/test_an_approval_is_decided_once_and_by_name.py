"""Approvals: requested with the wait, decided once, by somebody with a name, bound to what was asked."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied

from django_durable import (
    ApprovalTimeout,
    Context,
    Execution,
    ExecutionClosed,
    InvalidTransition,
    workflow,
)
from django_durable.models import ApprovalRequest, Message, OperatorNote
from django_durable.signals import approval_requested
from django_durable.testing import DurableKit

pytest_plugins = ["django_durable.testing.plugin"]


@workflow("composition.expense")
def expense(ctx: Context, amount: int, permission: str | None = None) -> Any:
    try:
        found = ctx.wait_for_approval(
            "legal", prompt="Pay it?", data={"amount": amount}, permission=permission, timeout=60
        )
    except ApprovalTimeout:
        return "late"
    return [found.approved, found.actor, found.reason, found.data]


@workflow("composition.two_approvals")
def two_approvals(ctx: Context) -> list[bool]:
    return [ctx.wait_for_approval("legal", prompt=prompt).approved for prompt in ("first", "second")]


@workflow("composition.uncaught_approval")
def uncaught(ctx: Context) -> bool:
    return ctx.wait_for_approval("legal", timeout=60).approved


@workflow("composition.careless")
def careless(ctx: Context) -> str:
    return "yes" if ctx.wait_for_approval("legal") else "no"


def ended(execution: Execution[Any]) -> Any:
    execution.refresh_from_db()
    return execution.output


@pytest.mark.parametrize("approved", [True, False])
def test_a_decision_ends_the_wait_and_is_recorded_with_its_actor(durable: DurableKit, approved: bool) -> None:
    execution = durable.run(expense, 5)
    asked = ApprovalRequest.objects.open().get()
    assert (asked.name, asked.prompt, asked.encoded_data, asked.position) == ("legal", "Pay it?", '{"amount":5}', 0)
    assert execution.decide("legal", approved=approved, actor="ada", reason="why not", data={"by": 1}) is True
    durable.run_until_idle()
    assert ended(execution) == [approved, "ada", "why not", {"by": 1}]
    note = OperatorNote.objects.get()
    assert (note.verb, note.actor, note.reason) == ("approve" if approved else "reject", "ada", "why not")
    asked.refresh_from_db()
    assert (asked.outcome, asked.actor) == ("approved" if approved else "rejected", "ada")
    assert asked.decided_at == execution.history()[0]["output"]["decided_at"]
    durable.assert_replays(expense, durable.export_history(execution))


def test_the_second_decision_loses_also_after_the_end(durable: DurableKit) -> None:
    execution = durable.run(expense, 5)
    assert execution.decide("legal", approved=True, actor="ada") is True
    assert execution.decide("legal", approved=False, actor="bob") is False
    durable.run_until_idle()
    assert execution.decide("legal", approved=False, actor="bob") is False
    assert ended(execution)[:2] == [True, "ada"]
    assert OperatorNote.objects.count() == Message.objects.count() == 1


def test_a_decision_after_the_deadline_loses_and_one_before_it_wins_although_noticed_later(
    durable: DurableKit,
) -> None:
    late, in_time, unnoticed = (durable.run(expense, number) for number in range(3))
    in_time.decide("legal", approved=True, actor="ada")
    durable.advance(61)
    assert unnoticed.decide("legal", approved=True, actor="ada") is False
    durable.run_until_idle()
    assert late.decide("legal", approved=True, actor="ada") is False
    assert [ended(late), ended(in_time)[0], ended(unnoticed)] == ["late", True, "late"]
    assert not ApprovalRequest.objects.open().exists()


def test_a_decision_is_bound_to_the_request_that_was_open(durable: DurableKit) -> None:
    execution = durable.run(two_approvals)
    execution.decide("legal", approved=True, actor="ada")
    assert execution.decide("legal", approved=False, actor="ada") is False
    durable.run_until_idle()
    assert ApprovalRequest.objects.open().get().prompt == "second"
    assert execution.decide("legal", approved=False, actor="ada") is True
    durable.run_until_idle()
    assert ended(execution) == [True, False]


def test_nothing_can_be_decided_that_was_not_asked(durable: DurableKit) -> None:
    execution = expense.start(5)
    with pytest.raises(InvalidTransition, match="requested no approval 'legal'"):
        execution.decide("legal", approved=True, actor="ada")
    durable.run_until_idle()
    with pytest.raises(InvalidTransition, match="requested no approval 'other'"):
        execution.decide("other", approved=True, actor="ada")
    with pytest.raises(ValueError, match="actor"):
        execution.decide("legal", approved=True, actor=" ")
    assert not Message.objects.exists()


def test_the_end_of_the_run_closes_its_request_and_a_retry_opens_it_again(durable: DurableKit) -> None:
    execution = durable.run(uncaught)
    execution.cancel(actor="ann")
    assert not ApprovalRequest.objects.open().exists()
    with pytest.raises(ExecutionClosed):
        execution.decide("legal", approved=True, actor="ada")
    again = durable.run(uncaught)
    durable.run_until_idle(skip="all")
    again.refresh_from_db()
    assert (again.status, ApprovalRequest.objects.open().count()) == ("failed", 0)
    again.retry(actor="ann")
    durable.run_until_idle()
    assert ApprovalRequest.objects.open().get().execution_id == again.pk
    assert again.decide("legal", approved=True, actor="ada") is True
    durable.run_until_idle()
    assert ended(again) is True


def test_a_user_needs_the_permission_that_the_request_names(durable: DurableKit) -> None:
    execution = durable.run(expense, 5, "django_durable.decide_approval")
    nobody = User.objects.create_user("nobody")
    with pytest.raises(PermissionDenied):
        execution.decide("legal", approved=True, actor=nobody)
    execution.refresh_from_db()
    assert execution.status == "waiting"
    root = User.objects.create_superuser("root")
    assert execution.decide("legal", approved=True, actor=root) is True
    durable.run_until_idle()
    assert ended(execution)[1] == "root"


def test_a_pause_keeps_the_decision(durable: DurableKit) -> None:
    execution = durable.run(expense, 5)
    execution.pause(actor="ann")
    assert execution.decide("legal", approved=True, actor="ada") is True
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "paused"
    execution.resume(actor="ann")
    durable.run_until_idle()
    assert ended(execution)[0] is True


def test_the_signal_is_sent_once_when_it_is_first_requested(durable: DurableKit) -> None:
    heard: list[Any] = []

    def hear(sender: Any, execution: Execution[Any], name: str, position: int, **more: Any) -> None:
        heard.append((execution.pk, name, position))

    approval_requested.connect(hear)
    try:
        execution = durable.run(expense, 5)
        execution.pause(actor="ann")
        execution.resume(actor="ann")
        durable.run_until_idle()
    finally:
        approval_requested.disconnect(hear)
    assert heard == [(execution.pk, "legal", 0)]


def test_an_approval_is_neither_true_nor_false(durable: DurableKit) -> None:
    durable.on_wait("legal", lambda execution: execution.decide("legal", approved=False, actor="ada"))
    execution = durable.run(careless)
    assert execution.error is not None
    assert (execution.status, execution.error["type"]) == ("failed", "builtins.TypeError")
