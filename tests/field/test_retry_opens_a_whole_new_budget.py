"""Field reports B67 and B68: a run that was retried dies again within seconds, or nothing ever dispatches it.

Every way in which a run can die, retried from code and by the command: it runs at once, has everything that it had
at its start, and repeats nothing that is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db.models import QuerySet

from django_durable import Context, Execution, InvalidTransition, Retry, current_step, step, workflow
from django_durable.models import Checkpoint, DeadLetter, DispatchHint
from tests.calling import durable
from tests.driving import claim, drain, lapse_leases, make_due
from tests.field.bench import workflows
from tests.field.bench.running import bench_of, embedded_worker
from tests.services.project import Project
from tests.services.waiting import wait_until

ran: list[str] = []
broken: set[str] = set()


@pytest.fixture(autouse=True)
def _forget(settings: Any) -> None:
    ran.clear()
    broken.clear()
    broken.add("the cause")
    settings.DURABLE = {"MAX_RECOVERIES": 2}


@step
def before() -> str:
    ran.append("before")
    return "before"


@step(retry=Retry(max_attempts=3, initial=0))
def fails() -> str:
    ran.append(f"attempt {current_step().attempt}")
    if broken:
        raise ValueError("not mended yet")
    return "mended"


@step(retry=Retry(max_attempts=3, initial=3600))
def fails_slowly() -> str:
    ran.append(f"attempt {current_step().attempt}")
    if broken:
        raise ValueError("not mended yet")
    return "mended"


@workflow
def mortal(ctx: Context, how: str) -> str:
    ctx.step(before)
    if how == "body":
        ran.append("body")
        if broken:
            raise ValueError("not mended yet")
        return "mended"
    if how == "step":
        return ctx.step(fails)
    if how == "deadline in a delay":
        return ctx.step(fails_slowly)
    ctx.wait_for_signal("go")
    ran.append("after")
    return "mended"


def corrupt(model: type, name: str, text: str) -> None:
    """Write past the engine, as a bad restore or a lost codec key would."""
    QuerySet(model).update(**{name: text})


def die_of_step(execution: Execution[Any]) -> None:
    drain()


def die_of_crashes(execution: Execution[Any]) -> None:
    for _ in range(3):
        [_lost] = claim()
        ran.append("crash")
        lapse_leases()
    assert claim() == []


def die_of_deadline(execution: Execution[Any]) -> None:
    drain()
    QuerySet(Execution).update(deadline="2000-01-01T00:00:00Z")
    make_due()
    drain()


def die_of_input(execution: Execution[Any]) -> None:
    if broken:
        corrupt(Execution, "encoded_input", '{"how": {"$nobody": 1}}')
    drain()


def die_of_checkpoint(execution: Execution[Any]) -> None:
    drain()
    execution = Execution.objects.locate(execution.pk)
    if execution.status == "waiting":
        execution.signal("go")
    if broken:
        QuerySet(Checkpoint).filter(kind="signal").update(status="completed", encoded_output="[1, 2")
    drain()


DEATHS: dict[str, tuple[Callable[[Execution[Any]], None], str]] = {
    "step": (die_of_step, "failed"),
    "body": (die_of_step, "failed"),
    "crashes": (die_of_crashes, "dead"),
    "deadline": (die_of_deadline, "timed_out"),
    "deadline in a delay": (die_of_deadline, "timed_out"),
    "input": (die_of_input, "failed"),
    "checkpoint": (die_of_checkpoint, "failed"),
}


def start(how: str) -> Execution[Any]:
    return mortal.using(timeout=3600 if how.startswith("deadline") else None).start(how)


def by_code(execution: Execution[Any]) -> None:
    Execution.objects.locate(execution.pk).retry(actor="ann", reason="mended")


def by_command(execution: Execution[Any]) -> None:
    assert durable("retry", execution.pk, "--actor", "ann", "--reason", "mended").code == 0


def mend() -> None:
    broken.clear()
    QuerySet(Execution).filter(encoded_input__contains="nobody").update(encoded_input='{"how": "input"}')
    QuerySet(Checkpoint).filter(encoded_output="[1, 2").update(encoded_output="null")


@pytest.mark.django_db
@pytest.mark.parametrize("retry", [by_code, by_command])
@pytest.mark.parametrize("how", DEATHS)
def test_the_cause_mended_it_goes_on_where_it_stood(how: str, retry: Callable[[Execution[Any]], None]) -> None:
    execution = start(how)
    kill, status = DEATHS[how]
    kill(execution)
    dead = Execution.objects.locate(execution.pk)
    assert dead.status == status
    listed, takeovers = DeadLetter.objects.get(), dead.takeovers
    mend()
    retry(execution)

    retried = Execution.objects.locate(execution.pk)
    assert (retried.status, retried.error, retried.recoveries) == ("pending", None, 0)
    assert retried.finished_at is None
    hint = DispatchHint.objects.get()
    assert (hint.revision, hint.token) == (retried.revision, None)
    drain()
    if Execution.objects.locate(execution.pk).status == "waiting":
        execution.signal("go")
        drain()
    assert Execution.objects.locate(execution.pk).output == "mended"
    assert ran.count("before") == 1
    # What happened before stays listed: the error, what ended the run, who lost it.
    letter = DeadLetter.objects.get()
    assert (letter.encoded_error, letter.retried_by) == (listed.encoded_error, "ann")
    assert Execution.objects.locate(execution.pk).takeovers == takeovers
    if how == "step":
        [failure] = json.loads(letter.failures)
        assert (failure["position"], failure["attempt"], failure["status"]) == (1, 3, "failed")


@pytest.mark.django_db
@pytest.mark.parametrize("how", DEATHS)
def test_the_cause_not_mended_it_dies_again_after_as_much_as_the_first_time(how: str) -> None:
    execution = start(how)
    kill, status = DEATHS[how]
    kill(execution)
    first = [line for line in ran if line != "before"]
    for generation in (2, 3):
        ran.clear()
        by_code(execution)
        kill(execution)
        assert Execution.objects.locate(execution.pk).status == status
        assert [line for line in ran if line != "before"] == first
        assert DeadLetter.objects.count() == generation
        assert DeadLetter.objects.filter(retried_at=None).count() == 1


@pytest.mark.django_db
def test_a_live_run_keeps_its_budget_and_an_ended_one_its_end() -> None:
    running, waiting, done, cancelled = (start("wait") for _ in range(4))
    drain()
    for execution in (done, cancelled):
        execution.signal("go")
    cancelled.cancel(actor="ann")
    drain()
    running.signal("go")
    [_claimed] = claim()
    lapse_leases()
    [_claimed] = claim()
    expected = {running: "running", waiting: "waiting", done: "completed", cancelled: "cancelled"}
    for execution, status in expected.items():
        before_the_retry = Execution.objects.filter(pk=execution.pk).values().get()
        assert before_the_retry["status"] == status
        with pytest.raises(InvalidTransition):
            by_code(execution)
        assert durable("retry", execution.pk, "--actor", "ann").code == 1
        assert Execution.objects.filter(pk=execution.pk).values().get() == before_the_retry
    assert Execution.objects.locate(running.pk).recoveries == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("retry", [by_code, by_command])
def test_a_worker_that_runs_takes_it_without_a_lapse_or_a_sweep(
    settings: Any, retry: Callable[[Execution[Any]], None]
) -> None:
    settings.DURABLE = {"LEASE_SECONDS": 300, "TICK_SECONDS": 300}
    failing, waiting = start("step"), start("wait")
    with embedded_worker(concurrency=2):
        wait_until(lambda: Execution.objects.locate(failing.pk).status == "failed", within=20)
        wait_until(lambda: Execution.objects.locate(waiting.pk).status == "waiting", within=20)
        mend()
        retry(failing)
        wait_until(lambda: Execution.objects.locate(failing.pk).status == "completed", within=10)
    if retry is by_command:
        assert durable("cancel", waiting.pk).out == "cancelled\n"
    else:
        assert waiting.cancel(actor="ann") is True
    assert ran.count("before") == 2


def test_a_step_that_kills_its_process_is_entered_as_often_again_and_ends_once_it_is_mended(
    project: Project, tmp_path: Path
) -> None:
    bench = bench_of(project, tmp_path)
    bench.durable.update(LEASE_SECONDS=0.8, POLL_SECONDS=0.2)
    execution = workflows.deadly.start()
    for _ in range(3):
        bench.worker("--concurrency", "1")
    bench.wait_for_status(execution, "dead")
    assert bench.effects().count("begin deadly") == 2
    project.run_manage("durable", "retry", str(execution.pk), "--actor", "ann")
    bench.wait_for_effect("begin deadly", times=3)
    for _ in range(2):
        bench.worker("--concurrency", "1")
    bench.wait_for_status(execution, "dead")
    assert bench.effects().count("begin deadly") == 4
    (tmp_path / "fixed-deadly").touch()
    Execution.objects.locate(execution.pk).retry(actor="ann")
    done = bench.wait_for_status(execution, "completed")
    assert done.output == "deadly"
    assert bench.effects().count("deadly: before") == 1
    assert [entry["reason"] for entry in json.loads(done.takeovers)] == ["lease expired"] * 4
    assert done.dead_letters.count() == 2
