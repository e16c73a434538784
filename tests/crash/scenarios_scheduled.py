"""Scenarios of schedules: a time is decided once, and its execution started once, whoever dies meanwhile."""

from __future__ import annotations

from typing import Any

from django_durable import Context, workflow
from django_durable.clock import read_now
from django_durable.models import Execution, Schedule, ScheduleFire
from django_durable.operators.schedules.verbs import add
from django_durable.runtime.schedule_sweeps import fire_schedules
from tests.crash.acts import Act, later, work
from tests.crash.flows import effect
from tests.crash.life import Violation
from tests.crash.places import here, rows
from tests.crash.run import Run
from tests.crash.scenario import Scenario

__all__ = ["SCHEDULED"]


@workflow("crash.scheduled")
def scheduled(ctx: Context, mark: str) -> Any:
    return ctx.step(effect, f"{mark}-1")


def make(flow: Any, **options: Any) -> Act:
    """An operator makes a schedule that is due every hour."""

    def do(run: Run) -> None:
        tenant = here.tenant if here.apart else None
        add(run.mark, flow.name, arguments={"mark": run.mark}, every=3600, tenant=tenant, actor="ann", **options)

    return Act("operator", do, lambda run: rows(Schedule).filter(name=run.mark).exists())


def fire(*, all_of_it: bool = False) -> Act:
    """The sweep that decides what is due, and starts what was queued."""

    def done(run: Run) -> bool:
        due = rows(Schedule).filter(due_at__lte=read_now(here.plane)).exists()
        fires = rows(ScheduleFire).filter(outcome="started")
        started, executions = {fire.execution_id for fire in fires}, set(rows(Execution).values_list("pk", flat=True))
        if started != executions:
            raise Violation(f"{len(started)} times were started, and there are {len(executions)} executions")
        queued = rows(ScheduleFire).filter(outcome="queued").exists()
        return not due and not (all_of_it and queued)

    return Act("sweeper", lambda run: fire_schedules(here.plane), done)


def outcomes(*expected: str) -> Any:
    def check(run: Run) -> None:
        found = list(rows(ScheduleFire).order_by("nominal_at").values_list("outcome", flat=True))
        if found != list(expected):
            raise Violation(f"the times came to {found}, not {list(expected)}")

    return check


SCHEDULED = [
    Scenario(
        name="schedule_fire",
        sweep_from=1,
        script=lambda run: [make(scheduled), later(1), fire(), work()],
        labels=("-1",),
        output=lambda mark: f"{mark}-1 done",
        check=outcomes("started"),
    ),
    Scenario(
        name="schedule_catches_up_all",
        sweep_from=1,
        script=lambda run: [make(scheduled, catch_up="all", overlap="allow"), later(3), fire(), work()],
        executions=3,
        labels=("-1",),
        output=lambda mark: f"{mark}-1 done",
        check=outcomes("started", "started", "started"),
    ),
    Scenario(
        name="schedule_starts_the_queued_one",
        sweep_from=4,
        script=lambda run: [
            *(make(scheduled, overlap="queue"), later(1), fire(), later(1), fire()),
            *(work(), fire(all_of_it=True), work()),
        ],
        executions=2,
        labels=("-1",),
        output=lambda mark: f"{mark}-1 done",
        check=outcomes("started", "started"),
    ),
]
