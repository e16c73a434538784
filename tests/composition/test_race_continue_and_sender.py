"""A message that is on its way while its run continues reaches exactly one of the two runs, and is never lost."""

from __future__ import annotations

import os
from typing import Any

import pytest

from django_durable import Context, Execution, workflow
from django_durable.engine.transitions.continuation import Successor, continue_as_new
from django_durable.engine.transitions.leave import Pages
from django_durable.models import Message
from django_durable.runtime.turn import run_turn
from tests.db.racing import Transaction, claim_one, racers
from tests.driving import claim, drain, lease_of
from tests.services.project import Project


@workflow("racing.two_runs")
def two_runs(ctx: Context, number: int) -> Any:
    if number == 1:
        ctx.continue_as_new(2)
    return ctx.wait_for_signal("go")


def carry_on(claimed: Any) -> bool:
    successor = Successor(encoded_input='{"number": 2}', source_digest="")
    return continue_as_new(claimed, Pages(), successor)


@pytest.mark.parametrize("commits", [True, False])
def test_a_signal_that_commits_while_the_run_continues_is_for_the_successor(project: Project, commits: bool) -> None:
    execution = two_runs.start(1)
    with racers() as (sender, turn):
        held = turn.run(claim_one)
        sending = Transaction(sender)
        sender.run(execution.signal, "go", "on its way")
        continuing = turn.begin(carry_on, held)
        if os.environ["TEST_DB"] == "postgres":
            turn.wait_for_lock(continuing)
        if commits:
            sending.commit()
        else:
            sending.roll_back()
        assert continuing.result(60)
    assert list(Message.objects.values_list("execution__run", flat=True)) == [2] * commits
    drain()
    current = Execution.objects.get(run=2)
    assert current.status == ("completed" if commits else "waiting")
    assert current.output == ("on its way" if commits else None)


def test_a_signal_that_waits_for_the_end_is_for_the_successor(project: Project) -> None:
    execution = two_runs.start(1)
    with racers() as (sender, turn):
        held = turn.run(claim_one)
        ending = Transaction(turn)
        assert turn.run(carry_on, held)
        sending = sender.begin(execution.signal, "go", "late")
        if os.environ["TEST_DB"] == "postgres":
            sender.wait_for_lock(sending)
        ending.commit()
        assert sending.result(60) > 0
    drain()
    assert Execution.objects.get(run=2).output == "late"


def test_a_cancel_that_waits_for_the_end_cancels_the_successor(project: Project) -> None:
    execution = two_runs.start(1)
    with racers() as (operator, turn):
        held = turn.run(claim_one)
        ending = Transaction(turn)
        assert turn.run(carry_on, held)
        cancelling = operator.begin(execution.cancel)
        if os.environ["TEST_DB"] == "postgres":
            operator.wait_for_lock(cancelling)
        ending.commit()
        assert cancelling.result(60)
    assert list(Execution.objects.order_by("run").values_list("status", flat=True)) == ["continued", "cancelled"]


@workflow("racing.parent_of_two_runs")
def parent(ctx: Context) -> Any:
    return ctx.child(two_runs.using(key="child"), 1)


def test_a_parent_that_ends_while_its_child_continues_leaves_no_run_behind(project: Project) -> None:
    """Whichever comes first: the parent's end waits for the successor and takes it along."""
    execution = parent.start()
    with racers() as (operator, turn):
        for claimed in turn.run(claim):
            turn.run(run_turn, claimed, lease_of(claimed))
        held = turn.run(claim_one)
        ending = Transaction(turn)
        assert turn.run(carry_on, held)
        cancelling = operator.begin(execution.cancel)
        if os.environ["TEST_DB"] == "postgres":
            operator.wait_for_lock(cancelling)
        ending.commit()
        assert cancelling.result(60)
    statuses = Execution.objects.filter(workflow="racing.two_runs").order_by("run").values_list("status", flat=True)
    assert list(statuses) == ["continued", "cancelled"]


def test_a_child_whose_parent_has_ended_continues_nothing(project: Project) -> None:
    execution = parent.start()
    with racers() as (operator, turn):
        for claimed in turn.run(claim):
            turn.run(run_turn, claimed, lease_of(claimed))
        held = turn.run(claim_one)
        cancelling = Transaction(operator)
        assert operator.run(execution.cancel)
        continuing = turn.begin(carry_on, held)
        if os.environ["TEST_DB"] == "postgres":
            turn.wait_for_lock(continuing)
        cancelling.commit()
        assert not continuing.result(60)
    assert [row.status for row in Execution.objects.filter(workflow="racing.two_runs")] == ["cancelled"]
