"""Any number of beats and workers, and an embedded worker beside them, do what one would do."""

from __future__ import annotations

from django_durable import Execution
from tests.celery.fleet import Fleet


def test_two_beats_and_two_workers_run_every_step_once(fleet: Fleet) -> None:
    fleet.worker("-c", "2")
    fleet.worker("-c", "2")
    fleet.beat()
    fleet.beat()
    ran = [fleet.start("quick", f"q{number}") for number in range(20)]
    slept = [fleet.start("nap", f"n{number}", 0.5) for number in range(10)]
    fleet.outputs([*ran, *slept])
    fleet.wait_until_idle()
    assert len(fleet.effects()) == len(set(fleet.effects())) == 2 * 30
    assert Execution.objects.filter(recoveries=0).count() == 30


def test_an_embedded_worker_and_celery_share_the_work(fleet: Fleet) -> None:
    fleet.worker("-c", "1")
    fleet.beat()
    embedded = fleet.project.manage("durable", "worker", "--concurrency", "1")
    executions = [fleet.start("held", f"h{number}") for number in range(2)]
    for number in range(2):
        fleet.wait_for_effect(f"begin h{number}-b")
    pids = {line.split()[0] for line in fleet.lines() if "begin" in line}
    assert len(pids) == 2
    assert str(embedded.pid) in pids
    for number in range(2):
        fleet.open(f"h{number}-b")
    fleet.outputs(executions)
    assert len(fleet.effects()) == len(set(fleet.effects())) == 2 * 4


def test_without_any_beat_a_worker_that_sees_no_tick_ticks_by_itself(fleet: Fleet) -> None:
    fleet.worker()
    assert fleet.outputs([fleet.start("nap", "n", 1.0)]) == ["n-b"]
