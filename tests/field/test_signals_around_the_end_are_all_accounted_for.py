"""Field report B58: a signal that is accepted while its run is finishing is lost without a trace.

Each sender is told what became of its signal, decided under the lock that the end takes: accepted ones were taken
by a wait or stand on the execution as not taken, the others were refused.
"""

from __future__ import annotations

import random
import time
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from django_durable import Context, Execution, ExecutionClosed, workflow
from django_durable.models import Message
from tests.calling import durable
from tests.driving import drain
from tests.field.bench.running import Aside, embedded_worker
from tests.services.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

RUNS, SENDERS = 30, 3


@workflow
def three_waits(ctx: Context) -> list[Any]:
    return [ctx.wait_for_signal("go") for _ in range(3)]


def send_until_refused(execution: Execution[Any], seed: int) -> tuple[list[int], int]:
    """The ids that were accepted, and how many were refused."""
    dice = random.Random(seed)
    accepted: list[int] = []
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            accepted.append(execution.signal("go", seed))
        except ExecutionClosed:
            return accepted, 1
        # Not faster: on PostgreSQL a claim passes over a row that a sender holds, and comes back later.
        time.sleep(dice.uniform(0.001, 0.006))
    raise AssertionError("the run did not end")


def test_accepted_is_taken_plus_left_over_and_the_rest_was_refused(settings: Any) -> None:
    settings.DURABLE = {"LEASE_SECONDS": 300, "TICK_SECONDS": 300}
    left_over = 0
    with embedded_worker(concurrency=4):
        for _ in range(RUNS):
            execution = three_waits.start()
            senders = [
                Aside(partial(send_until_refused, Execution.objects.locate(execution.pk), seed))
                for seed in range(SENDERS)
            ]
            for sender in senders:
                sender.start()
            told = [sender.finish() for sender in senders]
            accepted = sorted(message for ids, _ in told for message in ids)
            assert [refused for _, refused in told] == [1] * SENDERS
            stored = Message.objects.filter(execution_id=execution.pk)
            assert sorted(stored.values_list("pk", flat=True)) == accepted
            taken = stored.exclude(consumed_by=None)
            assert list(taken.order_by("consumed_by").values_list("consumed_by", flat=True)) == [0, 1, 2]
            left_over += len(accepted) - 3
    # The race took place: some were accepted after the last one that a wait took.
    assert left_over > 0


def test_what_no_wait_took_is_listed_for_operators() -> None:
    execution = three_waits.start()
    for number in range(5):
        execution.signal("go", f"payload {number}")
    drain()
    done = Execution.objects.locate(execution.pk)
    assert done.output == ["payload 0", "payload 1", "payload 2"]
    left = durable("show", execution.pk, "--json").data["unread"]
    assert [message["channel"] for message in left] == ["signal:go", "signal:go"]
    assert "payload" not in durable("show", execution.pk).out
    assert "unread messages" in durable("show", execution.pk).out


def test_a_send_in_an_open_transaction_decides_before_the_end_or_is_refused() -> None:
    """The end waits for a sender that came first, and its signal stands on the execution."""
    execution = three_waits.start()
    for number in range(3):
        execution.signal("go", number)

    def send() -> int:
        with transaction.atomic():
            return execution.signal("go", "last")

    with embedded_worker(concurrency=1):
        sender = Aside(send)
        sender.start()
        wait_until(lambda: Execution.objects.locate(execution.pk).is_terminal, within=20)
        try:
            message: int | None = sender.finish()
        except ExecutionClosed:
            message = None
    unread = list(Message.objects.filter(consumed_by=None).values_list("pk", flat=True))
    assert unread == ([] if message is None else [message])
