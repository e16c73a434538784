"""Two publishers and any number of ticks at once: each event starts exactly one run, none is lost."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from django_durable import Context, Execution, workflow
from django_durable.clock import shift, shifted
from django_durable.events import publish
from django_durable.models import GatheredEvent
from django_durable.runtime.gathering import start_gathered
from tests.db.racing import USING, Transaction, racers
from tests.services.project import Project


@workflow("flow.raced_last")
def raced_last(ctx: Context, payload: Any) -> None: ...


@workflow("flow.raced_lines")
def raced_lines(ctx: Context, lines: list[Any]) -> None: ...


@workflow("flow.raced_alone")
def raced_alone(ctx: Context, payload: Any) -> None: ...


@pytest.fixture(autouse=True)
def subscribed() -> Iterator[None]:
    raced_last.on_event("raced.saved", key=lambda saved: f"key-{saved % 3}", debounce=60)
    raced_lines.on_event("raced.line", batch=(4, 60))
    raced_alone.on_event("raced.touched", debounce=60)
    with shifted():
        yield
    raced_last.subscriptions.clear()
    raced_lines.subscriptions.clear()
    raced_alone.subscriptions.clear()


def inputs(workflow: Any) -> list[Any]:
    rows = Execution.objects.using(USING).filter(workflow=workflow.name).order_by("pk")
    return [value for row in rows for value in row.input.values()]


def test_many_publishers_and_ticks_start_each_event_once(project: Project) -> None:
    with racers(6) as sides:
        barrier = threading.Barrier(len(sides))

        def publisher(first: int) -> None:
            barrier.wait(60)
            for number in range(first, first + 15):
                publish("raced.line", number)

        def ticker() -> None:
            barrier.wait(60)
            for _pass in range(20):
                start_gathered(USING)

        publishing = [side.begin(publisher, 100 * at) for at, side in enumerate(sides[:4])]
        for future in [*publishing, *[side.begin(ticker) for side in sides[4:]]]:
            future.result(60)
    assert GatheredEvent.objects.using(USING).count() < 4
    shift(timedelta(minutes=2))
    start_gathered(USING)
    lines = inputs(raced_lines)
    assert sorted(number for line in lines for number in line) == sorted(
        number for first in (0, 100, 200, 300) for number in range(first, first + 15)
    )
    assert max(map(len, lines)) == 4


def test_ticks_at_once_start_one_run_of_a_burst(project: Project) -> None:
    for burst in range(8):
        for number in range(3):
            publish("raced.touched", [burst, number])
        shift(timedelta(minutes=2))
        with racers(4) as sides:
            barrier = threading.Barrier(len(sides))

            def ticker() -> int:
                barrier.wait(60)
                return start_gathered(USING)

            assert sum(future.result(60) for future in [side.begin(ticker) for side in sides]) == 1
    assert inputs(raced_alone) == [[burst, 2] for burst in range(8)]


def test_ticks_at_once_start_one_run_a_key(project: Project) -> None:
    for number in range(12):
        publish("raced.saved", number)
    shift(timedelta(minutes=2))
    with racers(4) as sides:
        barrier = threading.Barrier(len(sides))

        def ticker() -> int:
            barrier.wait(60)
            return start_gathered(USING)

        assert sum(future.result(60) for future in [side.begin(ticker) for side in sides]) == 3
    assert sorted(inputs(raced_last)) == [9, 10, 11]
    assert not GatheredEvent.objects.using(USING).exists()


if os.environ["TEST_DB"] == "postgres":  # elsewhere there is one writer at a time: nobody commits late

    def test_a_publisher_whose_commit_comes_late_is_not_forgotten(project: Project) -> None:
        with racers() as (late, other):
            publishing = Transaction(late)
            late.run(publish, "raced.saved", 0)
            other.run(publish, "raced.saved", 3)
            shift(timedelta(minutes=2))
            assert other.run(start_gathered, USING) == 1
            publishing.commit()
        start_gathered(USING)
        assert inputs(raced_last) == [3]
        assert GatheredEvent.objects.using(USING).count() == 1, "it waits for the end of the key's run"
