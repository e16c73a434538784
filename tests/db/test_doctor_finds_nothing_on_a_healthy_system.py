"""Zero findings: idle, with work in every state that is not a fault, and in the middle of being busy."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Context, Execution, step, workflow
from django_durable.models.execution import ACTIVE
from django_durable.operators.doctor import examine, liveness_violations
from django_durable.runtime.tick import tick
from tests.calling import durable
from tests.driving import USING, claim, drain
from tests.services.project import Project


@step
def add(number: int) -> int:
    return number + 1


@workflow("doctor.healthy")
def healthy(ctx: Context, then: str) -> int:
    number = ctx.step(add, 1)
    if then == "sleep":
        ctx.sleep(3600)
    elif then == "wait":
        ctx.wait_for_signal("go")
    elif then == "wait a while":
        ctx.wait_for_signal("go", timeout=3600)
    elif then == "break":
        ctx.breakpoint("here")
    elif then == "fail":
        raise ValueError("no")
    elif then == "nap":
        ctx.sleep(0.02)
    return ctx.step(add, number)


def start(then: str, **options: Any) -> Execution[Any]:
    return healthy.using(**options).start(then)


def check() -> None:
    assert [finding.as_dict() for finding in examine()] == []
    assert liveness_violations(USING) == []


@pytest.mark.django_db
def test_an_empty_database_has_no_findings() -> None:
    called = durable("doctor")
    assert (called.code, called.err) == (0, "no findings\n")
    check()


@pytest.mark.django_db
def test_every_healthy_state_at_once_has_no_findings() -> None:
    for then in ("end", "sleep", "wait", "wait a while", "break", "fail"):
        start(then)
        start(then, timeout=7200)
    start("end").cancel(actor="anna")
    drain()
    tick()
    start("wait").pause(actor="anna")
    start("end", run_after=3600)
    start("end")
    claim(limit=1)
    start("end", queue="other")

    assert set(Execution.objects.values_list("status", flat=True)) == {
        "pending",
        "running",
        "waiting",
        "paused",
        "completed",
        "failed",
        "cancelled",
    }
    check()


@pytest.mark.django_db
def test_dead_letters_are_numbers_and_no_finding() -> None:
    start("fail")
    drain()
    called = durable("doctor", "--json")
    assert (called.code, called.data["findings"]) == (0, [])
    assert called.data["stats"]["open_dead_letters"] == 1


def test_a_busy_system_has_no_findings_at_any_moment(project: Project) -> None:
    """The worker is a process of its own; every look here falls into the middle of something else."""
    project.python(
        """
        from django.core.management import call_command
        import tests.db.test_doctor_finds_nothing_on_a_healthy_system
        call_command("durable", "worker", concurrency=4)
        """
    )
    started = [start(then) for _ in range(15) for then in ("end", "nap", "fail", "wait")]
    looks = 0
    signalled = False
    while Execution.objects.filter(status__in=ACTIVE).exists():
        check()
        looks += 1
        waiting = Execution.objects.filter(status="waiting", awaiting='["signal:go"]')
        if not signalled and waiting.count() == 15:
            signalled = True
            for execution in waiting:
                execution.signal("go")
        assert looks < 5000, "the work does not end"
    check()
    assert looks > 1
    assert Execution.objects.filter(status="completed").count() == len(started) * 3 // 4
