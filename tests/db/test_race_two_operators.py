"""Two operators act on one dead letter: exactly one wins, and the other is told who did."""

from __future__ import annotations

import os

import pytest

from django_durable import Execution, InvalidTransition
from django_durable.models import DeadLetter, DispatchHint, OperatorNote
from tests.db.racing import Transaction, breaking, racers
from tests.driving import drain
from tests.services.project import Project


def _failed() -> Execution[None]:
    execution = breaking.start()
    assert drain() == 1
    return execution


def test_the_second_retry_is_refused_and_told_who_won(project: Project) -> None:
    execution = _failed()
    with racers() as (ann, bob):
        retrying = Transaction(ann)
        ann.run(Execution.objects.get(pk=execution.pk).retry, actor="ann", reason="first")
        second = bob.begin(Execution.objects.get(pk=execution.pk).retry, actor="bob", reason="second")
        if os.environ["TEST_DB"] == "postgres":
            bob.wait_for_lock(second)
        retrying.commit()
        with pytest.raises(InvalidTransition, match="ann") as refused:
            second.result(60)
        assert refused.value.actor == "ann"
        assert DeadLetter.objects.get().retried_by == "ann"
        assert DispatchHint.objects.count() == OperatorNote.objects.count() == 1
    assert drain() == 1
    assert DeadLetter.objects.count() == 2


def test_the_second_retry_wins_when_the_first_is_rolled_back(project: Project) -> None:
    execution = _failed()
    with racers() as (ann, bob):
        retrying = Transaction(ann)
        ann.run(Execution.objects.get(pk=execution.pk).retry, actor="ann")
        second = bob.begin(Execution.objects.get(pk=execution.pk).retry, actor="bob")
        if os.environ["TEST_DB"] == "postgres":
            bob.wait_for_lock(second)
        retrying.roll_back()
        second.result(60)
        assert DeadLetter.objects.get().retried_by == "bob"
        assert OperatorNote.objects.get().actor == "bob"


def test_ten_operators_at_once_have_one_winner(project: Project) -> None:
    execution = _failed()
    with racers(10) as sides:
        tries = [
            side.begin(Execution.objects.get(pk=execution.pk).retry, actor=f"operator {number}")
            for number, side in enumerate(sides)
        ]
        refusals = [error for future in tries if (error := future.exception(60)) is not None]
        winner = DeadLetter.objects.get().retried_by
        assert len(refusals) == 9
        assert {refusal.actor for refusal in refusals if isinstance(refusal, InvalidTransition)} == {winner}
        assert Execution.objects.get().status == "pending"


def test_a_retry_and_a_cancel_have_one_order(project: Project) -> None:
    execution = _failed()
    with racers() as (ann, bob):
        retrying = Transaction(ann)
        ann.run(Execution.objects.get(pk=execution.pk).retry, actor="ann")
        cancelling = bob.begin(Execution.objects.get(pk=execution.pk).cancel, actor="bob")
        if os.environ["TEST_DB"] == "postgres":
            bob.wait_for_lock(cancelling)
        retrying.commit()
        assert cancelling.result(60) is True
        assert Execution.objects.get().status == "cancelled"
        assert not DispatchHint.objects.exists()
