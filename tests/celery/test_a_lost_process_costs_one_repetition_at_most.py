"""SIGKILL, a lease shorter than a step, a soft time limit: the execution goes on, and what is recorded stays."""

from __future__ import annotations

import json
import os
import signal
from datetime import timedelta

from django_durable.models import DispatchHint
from tests.celery.fleet import Fleet


def process_of(fleet: Fleet, line: str) -> int:
    """The process that wrote this line last."""
    return [int(each.split()[0]) for each in fleet.lines() if each.partition(" ")[2] == line][-1]


def test_a_killed_pool_process_is_replaced_and_its_step_repeated(fleet: Fleet) -> None:
    execution = fleet.start("held", "h")
    worker = fleet.worker()
    fleet.beat()
    fleet.wait_for_effect("begin h-b")
    killed = process_of(fleet, "begin h-b")
    assert killed != worker.pid
    os.kill(killed, signal.SIGKILL)
    fleet.wait_for_effect("begin h-b", times=2)
    fleet.open("h-b")
    done = fleet.wait_for_status(execution, "completed")
    assert [fleet.effects().count(line) for line in ("h-a", "begin h-b", "end h-b", "h-c")] == [1, 2, 1, 1]
    [takeover] = json.loads(done.takeovers)
    assert f":{killed}:" in takeover["worker"]
    assert done.recoveries == 1


def test_a_step_longer_than_its_lease_runs_once_in_a_forked_process(fleet: Fleet) -> None:
    fleet.durable["LEASE_SECONDS"] = 1.0
    execution = fleet.start("held", "h")
    fleet.worker()
    fleet.beat()
    fleet.wait_for_effect("begin h-b")
    hint = DispatchHint.objects.get()
    renewed = hint.due_at + timedelta(seconds=2.5)
    fleet.project.wait_for(lambda: DispatchHint.objects.get().due_at > renewed)
    assert DispatchHint.objects.get().token == hint.token
    fleet.open("h-b")
    assert fleet.wait_for_status(execution, "completed").recoveries == 0
    assert fleet.effects() == ["h-a", "begin h-b", "end h-b", "h-c"]


def test_a_soft_time_limit_abandons_the_attempt_and_the_process_goes_on(fleet: Fleet) -> None:
    fleet.settings = {"CELERY_TASK_SOFT_TIME_LIMIT": 1}
    execution = fleet.start("held", "h")
    worker = fleet.worker("-c", "1")
    fleet.beat()
    fleet.wait_for_effect("begin h-b", times=2)
    assert process_of(fleet, "begin h-b") == process_of(fleet, "h-a")
    fleet.open("h-b")
    done = fleet.wait_for_status(execution, "completed")
    assert [fleet.effects().count(line) for line in ("h-a", "end h-b", "h-c")] == [1, 1, 1]
    assert {each["reason"] for each in json.loads(done.takeovers)} == {"SoftTimeLimitExceeded"}
    assert "Soft time limit" in worker.stderr
    assert "Traceback" not in worker.stderr


def test_what_other_code_was_blocked_by_goes_on_here(fleet: Fleet) -> None:
    from django_durable.engine.transitions.unknown import block_unclaimable
    from django_durable.errors import UnknownWorkflow

    execution = fleet.start("quick", "q")
    hint_id = DispatchHint.objects.get(execution_id=execution.id).pk
    assert block_unclaimable("default", hint_id, execution.id, UnknownWorkflow("not here"), "0" * 16)
    assert fleet.reload(execution).status == "blocked"
    fleet.worker()
    fleet.beat()
    assert fleet.outputs([execution]) == ["q-b"]
