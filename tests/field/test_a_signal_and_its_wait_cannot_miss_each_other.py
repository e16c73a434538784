"""Field report B53: a signal in the gap between a wait's check and its registration is stored, and nobody wakes.

The sender and the wait stand in each other's way on purpose: whoever comes second sees the first.
"""

from __future__ import annotations

import random
import threading
import time
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction

from django_durable import Context, Execution, current_step, step, workflow
from django_durable.engine import messages
from django_durable.engine.transitions import wait
from django_durable.models import DispatchHint, Message
from django_durable.runtime.turn import run_turn
from tests.driving import claim, drain, lease_of
from tests.field.bench.running import Aside, backend_of_this_thread, embedded_worker, stands_at_a_lock
from tests.services.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@workflow
def one_wait(ctx: Context) -> Any:
    return ctx.wait_for_signal("go")


def outcome(execution: Execution[Any]) -> tuple[str, Any]:
    row = Execution.objects.locate(execution.pk)
    return row.status, row.output


def test_a_sender_between_the_check_and_the_registration_wakes_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = one_wait.start()
    sender = Aside(lambda: execution.signal("go", "in the gap"))
    check = messages.first_unread

    def check_and_pause(*args: Any, **kwargs: Any) -> Any:
        letter = check(*args, **kwargs)
        if letter is None and sender.ident is None:
            sender.start()
            sender.wait_until_it_stands()
        return letter

    monkeypatch.setattr(wait, "first_unread", check_and_pause)
    assert drain() >= 1
    sender.finish()
    drain()
    assert outcome(execution) == ("completed", "in the gap")


def test_a_sender_that_commits_late_is_seen_by_the_wait_that_came_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = one_wait.start()
    sent, reached = threading.Event(), threading.Event()
    waiter = backend_of_this_thread()

    def send_and_linger() -> None:
        with transaction.atomic():
            execution.signal("go", "late")
            sent.set()
            assert reached.wait(30)
            wait_until(lambda: stands_at_a_lock(waiter))

    def arrive_and_wait(*args: Any, **kwargs: Any) -> Any:
        reached.set()
        return wait.wait_for_messages(*args, **kwargs)

    monkeypatch.setattr("django_durable.engine.turn_writing.wait_for_messages", arrive_and_wait)
    [claimed] = claim()
    sender = Aside(send_and_linger)
    sender.start()
    assert sent.wait(30)
    run_turn(claimed, lease_of(claimed))
    sender.finish()
    assert outcome(execution) == ("completed", "late")


def test_a_run_that_a_sender_holds_is_claimed_once_the_sender_has_committed() -> None:
    execution = one_wait.start()
    sent, looked = threading.Event(), threading.Event()

    def send_and_linger() -> None:
        with transaction.atomic():
            execution.signal("go", "held")
            sent.set()
            assert looked.wait(30)

    sender = Aside(send_and_linger)
    sender.start()
    assert sent.wait(30)
    if connection.vendor == "postgresql":
        # SQLite lets nobody write in the meantime, so that there a claim simply waits.
        assert claim() == []
    looked.set()
    sender.finish()
    wait_until(drain)
    assert outcome(execution) == ("completed", "held")


def test_a_sender_that_takes_its_signal_back_leaves_the_run_waiting_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execution = one_wait.start()
    drain()
    with pytest.raises(RuntimeError), transaction.atomic():
        execution.signal("go", "taken back")
        assert DispatchHint.objects.exists()
        raise RuntimeError
    assert outcome(execution) == ("waiting", None)
    assert not DispatchHint.objects.exists()
    execution.signal("go", "meant")
    drain()
    assert outcome(execution) == ("completed", "meant")


def ended_with(execution: Execution[Any], value: Any) -> bool:
    return outcome(execution) == ("completed", value)


SENDERS, ROUNDS = 8, 30
arrivals: dict[UUID, threading.Event] = {}


@step
def arrive() -> None:
    """The run is about to reach its wait."""
    arrivals[current_step().execution_id].set()


@workflow
def arrives_and_waits(ctx: Context) -> Any:
    ctx.step(arrive)
    return ctx.wait_for_signal("go")


def start_and_send(seed: int) -> None:
    """Round after round, send while the run goes from its step to its wait."""
    dice = random.Random(seed)
    for number in range(ROUNDS):
        with transaction.atomic():
            execution = arrives_and_waits.start()
            arrived = arrivals[execution.pk] = threading.Event()
        assert arrived.wait(30)
        time.sleep(dice.uniform(0, 0.005))
        execution.signal("go", number)
        wait_until(partial(ended_with, execution, number), within=20)


def test_signals_that_race_the_registration_all_arrive(settings: Any) -> None:
    # Nothing else may wake a run that missed its signal: no lease lapses, and no sweep looks at waiting runs.
    settings.DURABLE = {"LEASE_SECONDS": 300, "TICK_SECONDS": 300}
    with embedded_worker(concurrency=8):
        senders = [Aside(partial(start_and_send, seed)) for seed in range(SENDERS)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.finish(60)
    assert not Execution.objects.exclude(status="completed").exists()
    assert not Message.objects.filter(consumed_by=None).exists()
    # The race took place: some runs waited for their signal, others found it there.
    suspended = Execution.objects.filter(status="completed", revision__gt=2).count()
    assert 0 < suspended < SENDERS * ROUNDS
