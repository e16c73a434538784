"""Signals: stored at acceptance, taken in order, exactly once, also before the wait; refused after the end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from django_durable import Context, Execution, ExecutionClosed, SignalTimeout, step, workflow
from django_durable.models import DispatchHint, Message
from tests.driving import USING, drain, make_due

pytestmark = pytest.mark.django_db


@step
def note(text: str) -> str:
    return text


@workflow
def four_waits(ctx: Context) -> list[Any]:
    got = [ctx.wait_for_signal("go") for _ in range(3)]
    try:
        got.append(ctx.wait_for_signal("go", timeout=2))
    except SignalTimeout:
        got.append("timeout")
    return got


@workflow
def one_wait(ctx: Context) -> Any:
    value = ctx.wait_for_signal("go", timeout=timedelta(days=7))
    ctx.step(note, "after")
    return value


def test_signals_from_before_the_wait_are_taken_in_order_and_the_last_wait_times_out() -> None:
    execution = four_waits.start()
    for number in (1, 2, 3):
        execution.signal("go", number)
    drain()
    assert Execution.objects.locate(execution.pk).status == "waiting"
    make_due()
    drain()
    assert Execution.objects.locate(execution.pk).output == [1, 2, 3, "timeout"]
    assert list(Message.objects.values_list("consumed_by", flat=True)) == [0, 1, 2]


def test_a_signal_wakes_a_waiting_execution_at_once() -> None:
    execution = one_wait.start()
    drain()
    waiting = Execution.objects.locate(execution.pk)
    assert waiting.status == "waiting"
    assert waiting.wake_at is not None
    waiting.signal("go", {"ok": None})
    assert Execution.objects.locate(execution.pk).status == "pending"
    assert DispatchHint.objects.count() == 1
    drain()
    assert Execution.objects.locate(execution.pk).output == {"ok": None}


def test_none_as_payload_differs_from_a_timeout() -> None:
    execution = one_wait.start()
    execution.signal("go")
    drain()
    done = Execution.objects.locate(execution.pk)
    assert done.status == "completed"
    assert done.output is None


def test_another_name_does_not_wake() -> None:
    execution = one_wait.start()
    drain()
    execution.signal("stop", 1)
    assert Execution.objects.locate(execution.pk).status == "waiting"


def test_a_repeated_dedup_key_returns_the_first_message_also_after_the_end() -> None:
    execution = one_wait.start()
    first = execution.signal("go", 1, dedup_key="a")
    assert execution.signal("go", 2, dedup_key="a") == first
    drain()
    assert execution.signal("go", 3, dedup_key="a") == first
    with pytest.raises(ExecutionClosed):
        execution.signal("go", 3, dedup_key="b")
    assert Execution.objects.locate(execution.pk).output == 1


def test_a_signal_in_a_rolled_back_transaction_was_never_sent() -> None:
    execution = one_wait.start()
    drain()
    with pytest.raises(RuntimeError), transaction.atomic(using=USING):
        execution.signal("go", 1)
        raise RuntimeError
    assert Execution.objects.locate(execution.pk).status == "waiting"
    assert not Message.objects.exists()


def test_a_message_accepted_before_the_deadline_wins_although_it_is_noticed_later() -> None:
    execution = one_wait.start()
    drain()
    execution.signal("go", "in time")
    make_due_but_not_the_checkpoint()
    drain()
    assert Execution.objects.locate(execution.pk).output == "in time"


def make_due_but_not_the_checkpoint() -> None:
    DispatchHint.objects.update(due_at="2000-01-01T00:00:00Z")


def test_signal_or_start_starts_once_and_signals_each_time() -> None:
    flow = four_waits.using(key="customer")
    first = flow.signal_or_start("go", 1)
    second = flow.signal_or_start("go", 2)
    assert first.pk == second.pk
    four_waits.signal("customer", "go", 3)
    drain()
    make_due()
    drain()
    assert four_waits.get("customer").output == [1, 2, 3, "timeout"]


@workflow
def uncaught_timeout(ctx: Context) -> Any:
    return ctx.wait_for_signal("go", timeout=1)


def test_an_uncaught_timeout_fails_the_run_and_a_retry_waits_anew() -> None:
    execution = uncaught_timeout.start()
    drain()
    make_due()
    drain()
    failed = Execution.objects.locate(execution.pk)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["type"] == "django_durable.errors.SignalTimeout"
    failed.retry(actor="ann")
    drain()
    again = Execution.objects.locate(execution.pk)
    assert again.status == "waiting"
    again.signal("go", 7)
    drain()
    assert Execution.objects.locate(execution.pk).output == 7
