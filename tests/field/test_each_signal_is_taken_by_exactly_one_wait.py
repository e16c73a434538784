"""Field report B56: signals of one name collapse into one, or come again when the run is replayed.

Workers are killed after a signal was taken and before anything else was recorded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from django_durable import Context, Execution, SignalTimeout, step, workflow
from django_durable.models import Message
from django_durable.runtime.turn import run_turn
from tests.driving import claim, drain, lapse_leases, lease_of, make_due
from tests.field.bench import workflows
from tests.field.bench.running import bench_of
from tests.services.project import Project


def test_a_kill_after_each_signal_was_taken_neither_loses_nor_repeats_one(project: Project, tmp_path: Path) -> None:
    bench = bench_of(project, tmp_path)
    execution = workflows.four_waits.start()
    for number in (1, 2, 3):
        execution.signal("go", number)
    for name in ("after the first", "after the third"):
        worker = bench.worker("--concurrency", "1")
        assert worker.wait(within=30) == -9, f"it was to die {name}"
    bench.worker()
    done = bench.wait_for_status(execution, "completed")
    assert done.output == [1, 2, 3, "timeout"]
    assert list(Message.objects.order_by("id").values_list("payload", "consumed_by")) == [
        ("1", 0),
        ("2", 2),
        ("3", 3),
    ]


@step
def work(number: int) -> int:
    return number


@workflow
def until_stopped(ctx: Context) -> list[Any]:
    """Takes signals in a loop; an old one must not satisfy a new wait."""
    got: list[Any] = []
    while True:
        try:
            letter = ctx.wait_for_signal("go", timeout=60)
        except SignalTimeout:
            return got
        got.append(ctx.step(work, letter))


@pytest.mark.django_db(transaction=True)
def test_a_loop_of_waits_takes_each_signal_once_however_often_it_is_replayed() -> None:
    execution = until_stopped.start()
    drain()
    for number in range(10):
        execution.signal("go", number)
        if number % 3 == 0:
            [_lost] = claim()
            lapse_leases()
        drain()
        assert Execution.objects.locate(execution.pk).status == "waiting"
    make_due()
    drain()
    assert Execution.objects.locate(execution.pk).output == list(range(10))


@pytest.mark.django_db(transaction=True)
def test_a_zombie_takes_no_signal_away_from_the_new_owner() -> None:
    execution = until_stopped.start()
    [zombie] = claim()
    lapse_leases()
    [heir] = claim()
    execution.signal("go", 1)
    run_turn(zombie, lease_of(zombie))
    assert list(Message.objects.values_list("consumed_by", flat=True)) == [None]
    run_turn(heir, lease_of(heir))
    make_due()
    drain()
    assert Execution.objects.locate(execution.pk).output == [1]
