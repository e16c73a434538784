"""Field report B36: recovery runs what it recovers, so one long step keeps the tick, or a whole start-up, waiting."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import QuerySet

from django_durable import Context, Execution, step, workflow
from django_durable.authoring import registry
from django_durable.models import DispatchHint, SweepClaim
from django_durable.runtime.tick import INTERVALS, tick
from tests.driving import claim, drain, lapse_leases
from tests.field.rig.yard import Yard

ORPHANS = 10
ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step
def long_step() -> None:
    ran.append("step")


@workflow
def long_one(ctx: Context) -> None:
    ran.append("body")
    ctx.step(long_step)


@workflow
def forgotten(ctx: Context) -> None:
    ran.append("body")


def tick_with_everything_due() -> dict[str, int]:
    """Every sweep has its turn."""
    SweepClaim.objects.update(due_at="2000-01-01T00:00:00Z")
    return tick(rebuild=True)


@pytest.mark.django_db
def test_no_sweep_calls_a_body_whatever_it_finds() -> None:
    def of_each_kind() -> list[Execution[Any]]:
        return [flow.start() for flow in (long_one, forgotten) for _ in range(ORPHANS)]

    of_each_kind()
    assert len(claim(2 * ORPHANS)) == 2 * ORPHANS  # lapsed leases
    lapse_leases()
    of_each_kind()  # due
    hintless = of_each_kind()  # lost hints
    DispatchHint.objects.filter(execution_id__in=[e.pk for e in hintless]).delete()
    unlettered = of_each_kind()  # ended without a dead letter
    QuerySet(Execution).filter(pk__in=[e.pk for e in unlettered]).update(status="failed")
    registry.forget(forgotten)
    try:
        done = tick_with_everything_due()
        assert set(done) == set(INTERVALS)
        found = {"unknown": 2 * ORPHANS, "letters": 2 * ORPHANS, "dangling": 2 * ORPHANS, "rebuild": 2 * ORPHANS}
        assert found.items() <= done.items()
        tick_with_everything_due()
        assert ran == []
    finally:
        registry.add_workflow(forgotten)
    drain()
    assert ran.count("step") == 3 * ORPHANS


def test_a_worker_is_ready_and_takes_new_work_while_orphans_run(yard: Yard) -> None:
    orphans = [yard.start("standing", str(number)) for number in range(ORPHANS)]
    lost = yard.worker("--concurrency", str(ORPHANS))
    for number in range(ORPHANS):
        yard.wait_for_effect(f"begin {number}")
    lost.kill()
    lapse_leases()
    # The bodies stand until this test lets them go: whoever ran one of them here would not come back.
    worker = yard.worker("--concurrency", str(ORPHANS + 2))
    new = yard.start("three", "new")
    yard.wait_for_status(new, "completed")
    for number in range(ORPHANS):
        yard.wait_for_effect(f"begin {number}", times=2)
    yard.project.run_manage("durable", "tick", "--rebuild", within=30)
    assert not any(line.startswith("end") for line in yard.effects())
    for number in range(ORPHANS):
        yard.open(str(number))
    for orphan in orphans:
        yard.wait_for_status(orphan, "completed")
    assert worker.is_running
