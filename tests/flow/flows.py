"""What the schedules of these tests start."""

from __future__ import annotations

from datetime import datetime, timedelta

from django_durable import Context, clock, workflow
from django_durable.clock import read_now
from django_durable.models import Schedule, ScheduleFire
from django_durable.runtime.schedule_sweeps import fire_schedules
from tests.driving import USING


@workflow("flow.report")
def report(ctx: Context, kind: str = "short") -> list[object]:
    return [kind, ctx.scheduled_for]


@workflow("flow.long")
def long(ctx: Context) -> object:
    return ctx.wait_for_signal("end")


def later(**duration: float) -> None:
    """That much time passes, and nothing ticks."""
    clock.shift(timedelta(**duration))


def move_to(moment: datetime) -> None:
    """The clock shows this time; it must lie ahead."""
    clock.shift(moment - read_now(USING) + timedelta(milliseconds=2))  # the clock of SQLite counts no less


def tick() -> int:
    """One pass of the sweep, as any process makes it."""
    return fire_schedules(USING)


def row(name: str) -> Schedule:
    return Schedule.objects.using(USING).get(name=name)


def outcomes(name: str) -> list[tuple[str, str]]:
    """What became of each time, in order."""
    fires = ScheduleFire.objects.using(USING).filter(schedule__name=name).order_by("nominal_at")
    return list(fires.values_list("outcome", "reason"))
