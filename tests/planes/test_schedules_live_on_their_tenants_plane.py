"""A schedule lives on its tenant's plane, fires there only, and goes along when the tenant moves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from django_durable import Context, Execution, clock, workflow
from django_durable.models import OperatorNote, Schedule, ScheduleFire
from django_durable.operators.move import tenant as moving
from django_durable.operators.schedules.declaring import forget_declared
from django_durable.planes import move_tenant
from django_durable.runtime.schedule_sweeps import fire_schedules
from django_durable.runtime.tick import tick
from tests.driving import drain
from tests.planes.conftest import NORTH, SOUTH, SPINE

pytestmark = pytest.mark.usefixtures("planes")


@workflow("planes.report")
def report(ctx: Context) -> object:
    return ctx.scheduled_for


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    forget_declared()
    with clock.shifted():
        yield
    report.schedules.clear()
    forget_declared()


def sweep() -> None:
    for alias in (SPINE, NORTH, SOUTH):
        fire_schedules(alias)


def later(**duration: float) -> None:
    clock.shift(timedelta(**duration))


def test_each_tenants_schedule_is_a_row_of_its_plane_and_fires_there() -> None:
    for tenant in ("ann", "cid"):
        report.schedule("hourly", every=3600, tenant=tenant)
    sweep()
    later(hours=1)
    sweep()
    drain()
    for alias, tenant in ((NORTH, "ann"), (SOUTH, "cid")):
        [execution] = Execution.objects.using(alias).filter(workflow="planes.report")
        assert (execution.tenant, execution.status) == (tenant, "completed")
        assert Schedule.objects.using(alias).get().tenant == tenant
    assert not Schedule.objects.using(SPINE).filter(name="hourly").exists()


def test_an_unknown_tenant_and_none_stop_no_other_schedule() -> None:
    report.schedule("nobodys", every=3600)  # refused: planes are configured
    report.schedule("strangers", every=3600, tenant="zoe")
    report.schedule("anns", every=3600, tenant="ann")
    sweep()
    names = {
        row.name
        for alias in (SPINE, NORTH, SOUTH)
        for row in Schedule.objects.using(alias).filter(workflow="planes.report")
    }
    assert names == {"anns"}


def test_a_schedule_moves_with_its_tenant_and_fires_each_time_once() -> None:
    report.schedule("hourly", every=3600, tenant="ann")
    sweep()
    later(hours=1)
    sweep()
    schedule = Schedule.objects.using(NORTH).get()
    schedule.edit(jitter=0, overlap="allow", actor="op", reason="why")
    move_tenant("ann", "south", actor="op")
    later(hours=1)
    sweep()
    sweep()
    drain()
    assert not Schedule.objects.using(NORTH).exists()
    assert not ScheduleFire.objects.using(NORTH).exists()
    moved = Schedule.objects.using(SOUTH).get(tenant="ann")
    assert (moved.pk, moved.overlap, moved.moving) == (schedule.pk, "allow", False)
    assert ScheduleFire.objects.using(SOUTH).filter(outcome="started").count() == 2
    assert OperatorNote.objects.using(SOUTH).get(execution_id=schedule.pk).reason == "why"
    times = Execution.objects.using(SOUTH).filter(tenant="ann").values_list("scheduled_for", flat=True)
    assert len(set(times)) == len(times) == 2


@pytest.mark.parametrize("stage", ["copy_schedules", "_prepare", "_switch", "release", "release_schedules", "remove"])
def test_a_move_that_is_cut_short_fires_nothing_until_it_is_finished(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report.schedule("hourly", every=3600, tenant="ann", overlap="allow")
    sweep()
    later(hours=1)
    sweep()

    def die(*_args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(moving, stage, die)
        with pytest.raises(KeyboardInterrupt):
            move_tenant("ann", "south", actor="op")
    later(hours=1)
    sweep()
    fired = sum(ScheduleFire.objects.using(alias).filter(schedule__moving=False).count() for alias in (NORTH, SOUTH))
    assert fired == (2 if stage == "remove" else 0)
    move_tenant("ann", "south", actor="op")
    sweep()
    assert ScheduleFire.objects.using(SOUTH).count() == 2
    assert Execution.objects.using(SOUTH).filter(tenant="ann").count() == 2
    assert not Execution.objects.using(NORTH).exists()


def test_the_tick_fires_on_every_plane() -> None:
    report.schedule("hourly", every=3600, tenant="cid")
    tick()
    later(hours=1)
    assert tick()["schedules"] == 1
