"""Sender and waiter meet on the execution's row: whichever comes first, the message is taken, and once."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from django.db import connections

from django_durable import clock
from django_durable.models import DispatchHint, Execution, Message
from tests.db.racing import (
    USING,
    Transaction,
    append,
    claim_one,
    patient,
    racers,
    wait_for_go,
    waiter,
)
from tests.driving import drain
from tests.services.project import Project


def test_a_signal_that_commits_late_is_taken_by_the_wait_that_waited_for_it(project: Project) -> None:
    execution = waiter.start(1)
    with racers() as (sender, turn):
        held = turn.run(claim_one)
        turn.run(append, held)
        sending = Transaction(sender)
        message = sender.run(execution.signal, "go", "late")
        waiting = turn.begin(wait_for_go, held)
        if os.environ["TEST_DB"] == "postgres":
            turn.wait_for_lock(waiting)
        sending.commit()

        waited = waiting.result(60)
        assert waited.letter is not None
        assert (waited.suspended, waited.letter.id, waited.letter.payload) == (False, message, '"late"')
        assert Message.objects.get().consumed_by == 1
        assert Execution.objects.get().status == "running"


def test_a_signal_that_is_rolled_back_leaves_the_wait_waiting(project: Project) -> None:
    execution = waiter.start(1)
    with racers() as (sender, turn):
        held = turn.run(claim_one)
        turn.run(append, held)
        sending = Transaction(sender)
        sender.run(execution.signal, "go", "never")
        waiting = turn.begin(wait_for_go, held)
        if os.environ["TEST_DB"] == "postgres":
            turn.wait_for_lock(waiting)
        sending.roll_back()

        assert waiting.result(60).suspended
        assert not Message.objects.exists()
        assert not DispatchHint.objects.exists()
        assert turn.run(execution.signal, "go", "second") > 0
        assert drain() == 1
        assert Execution.objects.get().output == [1, "second"]


def test_two_senders_to_one_waiting_execution_wake_it_once(project: Project) -> None:
    execution = waiter.start(1)
    assert drain() == 1
    with racers() as (one, other):
        sending = Transaction(one)
        one.run(execution.signal, "go", "one")
        meanwhile = other.begin(execution.signal, "go", "other")
        if os.environ["TEST_DB"] == "postgres":
            other.wait_for_lock(meanwhile)
        sending.commit()
        meanwhile.result(60)

        assert Execution.objects.get().status == "pending"
        assert DispatchHint.objects.count() == 1
        assert drain() == 1
        assert Execution.objects.get().output == [1, "one"]
        assert Message.objects.filter(consumed_by=None).count() == 1


def test_one_deduplication_key_from_two_senders_is_one_message(project: Project) -> None:
    execution = waiter.start(1)
    with racers() as (one, other):
        sending = Transaction(one)
        first = one.run(execution.signal, "go", "once", dedup_key="k")
        meanwhile = other.begin(execution.signal, "go", "once", dedup_key="k")
        if os.environ["TEST_DB"] == "postgres":
            other.wait_for_lock(meanwhile)
        sending.commit()
        assert meanwhile.result(60) == first
        assert Message.objects.count() == 1


if os.environ.get("TEST_DB") == "postgres":

    def test_a_wake_that_meets_an_open_suspend_waits_for_it(project: Project) -> None:
        execution = waiter.start(1)
        with racers() as (sender, turn):
            held = turn.run(claim_one)
            turn.run(append, held)
            suspending = Transaction(turn)
            assert turn.run(wait_for_go, held).suspended
            sending = sender.begin(execution.signal, "go", "word")
            sender.wait_for_lock(sending)
            suspending.commit()
            sending.result(60)

            assert Execution.objects.get().status == "pending"
            assert DispatchHint.objects.get().revision == Execution.objects.get().revision
            assert drain() == 1
            assert Execution.objects.get().output == [1, "word"]

    def test_a_sender_in_a_slow_transaction_does_not_stop_a_turns_appends(project: Project) -> None:
        execution = waiter.start(1)
        with racers() as (sender, turn):
            held = turn.run(claim_one)
            sending = Transaction(sender)
            sender.run(execution.signal, "go", "slow")
            for position in range(5):
                assert turn.run(append, held, position) == 1
            sending.commit()

    def test_a_sender_in_a_slow_transaction_does_not_stop_other_senders_of_a_running_turn(project: Project) -> None:
        execution = waiter.start(1)
        with racers(3) as (sender, other, turn):
            turn.run(claim_one)
            sending = Transaction(sender)
            sender.run(execution.signal, "go", "slow")
            assert other.run(execution.signal, "go", "quick") > 0
            sending.commit()
            assert Message.objects.count() == 2

    def test_a_timer_and_a_signal_wake_it_once(project: Project) -> None:
        execution = patient.start()
        assert drain() == 1
        with clock.shifted(), racers() as (sender, turn):
            clock.shift(timedelta(seconds=61))
            sending = Transaction(sender)
            sender.run(execution.signal, "go", "too late")
            assert turn.run(drain) == 0, "the waking sender holds the row: the claim of the timer passes by"
            sending.commit()
            assert turn.run(drain) == 1
            assert Execution.objects.get().output == "late"
            assert not DispatchHint.objects.exists()

    @pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
    def test_a_late_signal_is_seen_whatever_the_sessions_isolation(project: Project, level: str) -> None:
        execution = waiter.start(1)
        with racers() as (sender, turn):
            turn.run(_set_isolation, level)
            held = turn.run(claim_one)
            assert turn.run(append, held) == 1
            sending = Transaction(sender)
            sender.run(execution.signal, "go", "late")
            waiting = turn.begin(wait_for_go, held)
            turn.wait_for_lock(waiting)
            sending.commit()
            letter = waiting.result(60).letter
            assert letter is not None and letter.payload == '"late"'

    def _set_isolation(level: str) -> None:
        with connections[USING].cursor() as cursor:
            cursor.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")
