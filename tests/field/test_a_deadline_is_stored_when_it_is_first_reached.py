"""Field report B40: a wait of six seconds begins anew after every crash, so it never times out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import QuerySet

from django_durable import (
    Context,
    Execution,
    InvalidTransition,
    Retry,
    RetryAfter,
    SignalTimeout,
    step,
    workflow,
)
from django_durable.clock import read_now
from django_durable.models import Checkpoint, DispatchHint
from tests.driving import USING, claim, drain, lapse_leases, make_due
from tests.field.rig.yard import Yard

TIMEOUT = 3.0


def test_a_wait_times_out_on_time_although_its_workers_are_killed_all_along(yard: Yard) -> None:
    execution = yard.start("patient", "x", TIMEOUT)
    killed = 0
    while not yard.reload(execution).is_terminal:
        worker = yard.worker()
        killed += 1
        if yard.reload(execution).is_terminal:
            break
        yard.wait_for_status(execution, "waiting", "completed")
        # It is woken, and replays up to its wait: after a pause and a resume there is a turn to be killed in.
        with suppress(InvalidTransition):
            execution.pause(actor="ann")
            execution.resume(actor="ann")
        worker.kill()
        assert killed < 60
    done = yard.reload(execution)
    assert done.status == "completed"
    assert yard.begun() == ["x-before", "x-timeout"]
    wait = Checkpoint.objects.get(kind="signal")
    assert wait.started_at is not None
    assert wait.wake_at is not None
    assert wait.finished_at is not None
    assert abs(wait.wake_at - wait.started_at - timedelta(seconds=TIMEOUT)) < timedelta(seconds=1)
    assert timedelta(0) <= wait.finished_at - wait.wake_at < timedelta(seconds=10)


def test_a_deadline_that_passed_while_nobody_worked_is_delivered_at_once(yard: Yard) -> None:
    execution = yard.start("patient", "x", 1.0)
    worker = yard.worker()
    waiting = yard.wait_for_status(execution, "waiting")
    worker.kill()
    assert waiting.wake_at is not None
    yard.project.wait_for(lambda: now() > waiting.wake_at + timedelta(seconds=1))
    yard.worker()
    ready_at = now()
    yard.wait_for_status(execution, "completed")
    assert now() - ready_at < timedelta(seconds=5)
    wait = Checkpoint.objects.get(kind="signal")
    assert wait.wake_at == waiting.wake_at


def now() -> datetime:
    """The clock that decides."""
    return read_now(USING)


ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


def always_again(how: str) -> None:
    ran.append(how)
    if ran.count(how) < 2:
        raise RetryAfter(600) if how == "retry after" else ValueError("not yet")


@step(retry=Retry(max_attempts=3, initial=600, jitter=1.0))
def backs_off(how: str) -> None:
    always_again(how)


def awaited_signal(ctx: Context) -> None:
    try:
        ctx.wait_for_signal("never", timeout=600)
    except SignalTimeout:
        ran.append("timeout")


WAITS: dict[str, Callable[[Context], Any]] = {
    "sleep": lambda ctx: ctx.sleep(600),
    "signal": awaited_signal,
    "back-off": lambda ctx: ctx.step(backs_off, "back-off"),
    "retry after": lambda ctx: ctx.step(backs_off, "retry after"),
    "deadline": lambda ctx: ctx.wait_for_signal("never"),
}


@workflow(timeout=3600)
def parked(ctx: Context, how: str) -> str:
    ctx.now()
    WAITS[how](ctx)
    return "end"


def stored(execution: Execution[str]) -> tuple[datetime | None, ...]:
    """Every time that was stored when the wait was first reached."""
    row = Execution.objects.locate(execution.pk)
    wait = Checkpoint.objects.exclude(kind="now").get()
    return (row.wake_at, row.deadline, wait.wake_at, wait.started_at, DispatchHint.objects.get().due_at)


@pytest.mark.django_db
@pytest.mark.parametrize("how", WAITS)
def test_neither_crashes_nor_replays_move_what_was_stored(how: str) -> None:
    execution = parked.start(how)
    drain()
    first = stored(execution)
    for _ in range(3):
        execution.pause(actor="ann")
        execution.resume(actor="ann")
        assert len(claim()) == 1
        lapse_leases()  # that worker is gone before it began
        drain()
        assert stored(execution) == first
    assert ran in ([], [how])
    make_due()
    if how == "deadline":
        QuerySet(Execution).update(deadline="2000-01-01T00:00:00Z")
    drain()
    done = Execution.objects.locate(execution.pk)
    assert done.status == ("timed_out" if how == "deadline" else "completed")
    assert ran == {"signal": ["timeout"], "sleep": [], "deadline": []}.get(how, [how, how])
