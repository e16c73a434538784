"""Cancel against a running turn: what was recorded before it stays, nothing is recorded after it."""

from __future__ import annotations

import os

from django_durable import Execution
from django_durable.engine.ownership import Refusal
from django_durable.engine.transitions import leave
from django_durable.engine.transitions.leave import Pages
from django_durable.models import DispatchHint
from tests.db.racing import Transaction, append, claim_one, journal, racers, refusal, wait_for_go, waiter
from tests.services.project import Project


def test_nothing_is_recorded_after_a_cancel(project: Project) -> None:
    execution = waiter.start(1)
    with racers() as (turn, operator):
        held = turn.run(claim_one)
        assert operator.run(execution.cancel, actor="ann") is True
        assert turn.run(append, held) == 0
        assert turn.run(refusal, held) in (Refusal.LOST, Refusal.ENDING)
        assert turn.run(leave.complete, held, Pages(), output="1") is False
        assert turn.run(leave.fail, held, Pages(), error="{}", failed_positions="") is False
        assert turn.run(wait_for_go, held).refused
        assert operator.run(journal, execution) == {}
        assert Execution.objects.get().status == "cancelled"
        assert not DispatchHint.objects.exists()


def test_a_cancel_that_meets_an_open_append_comes_after_it(project: Project) -> None:
    execution = waiter.start(1)
    with racers() as (turn, operator):
        held = turn.run(claim_one)
        appending = Transaction(turn)
        assert turn.run(append, held) == 1
        cancelling = operator.begin(execution.cancel, actor="ann")
        if os.environ["TEST_DB"] == "postgres":
            operator.wait_for_lock(cancelling)
        appending.commit()
        assert cancelling.result(60) is True
        assert list(operator.run(journal, execution)) == [0]
        assert turn.run(append, held, 1) == 0


def test_a_cancel_and_an_end_have_one_winner(project: Project) -> None:
    execution = waiter.start(1)
    with racers() as (turn, operator):
        held = turn.run(claim_one)
        ending = Transaction(turn)
        assert turn.run(leave.complete, held, Pages(), output="1") is True
        cancelling = operator.begin(execution.cancel, actor="ann")
        if os.environ["TEST_DB"] == "postgres":
            operator.wait_for_lock(cancelling)
        ending.commit()
        assert cancelling.result(60) is False
        assert Execution.objects.get().status == "completed"


def test_of_two_cancels_one_wins(project: Project) -> None:
    execution = waiter.start(1)
    with racers() as (ann, bob):
        cancelling = Transaction(ann)
        assert ann.run(Execution.objects.get().cancel, actor="ann") is True
        second = bob.begin(execution.cancel, actor="bob")
        if os.environ["TEST_DB"] == "postgres":
            bob.wait_for_lock(second)
        cancelling.commit()
        assert second.result(60) is False


if os.environ.get("TEST_DB") == "postgres":

    def test_an_append_that_meets_an_open_cancel_waits_and_is_refused(project: Project) -> None:
        execution = waiter.start(1)
        with racers() as (turn, operator):
            held = turn.run(claim_one)
            cancelling = Transaction(operator)
            assert operator.run(execution.cancel, actor="ann") is True
            appending = turn.begin(append, held)
            turn.wait_for_lock(appending)
            cancelling.commit()
            assert appending.result(60) == 0
            assert operator.run(journal, execution) == {}

    def test_an_append_that_met_a_cancel_that_was_rolled_back_is_recorded(project: Project) -> None:
        execution = waiter.start(1)
        with racers() as (turn, operator):
            held = turn.run(claim_one)
            cancelling = Transaction(operator)
            assert operator.run(execution.cancel, actor="ann") is True
            appending = turn.begin(append, held)
            turn.wait_for_lock(appending)
            cancelling.roll_back()
            assert appending.result(60) == 1
