"""SIGKILL in the middle of a step: another worker that runs already goes on, and no recorded step is repeated."""

from __future__ import annotations

import json

from django_durable.models import DispatchHint
from tests.processes.shop import Shop


def test_a_running_peer_takes_over_without_any_process_start(shop: Shop) -> None:
    first = shop.worker()
    execution = shop.start("three", "x")
    shop.wait_for_effect("begin x-b")
    second = shop.worker()
    first.kill()
    shop.wait_for_effect("begin x-b", times=2)
    shop.open("x-b")
    done = shop.wait_for_status(execution, "completed")
    assert done.output == "x-c"
    assert shop.effects().count("begin x-a") == 1
    assert shop.effects().count("begin x-c") == 1
    [takeover] = json.loads(done.takeovers)
    assert takeover["reason"] == "lease expired"
    assert f":{first.pid}:" in takeover["worker"]
    assert takeover["start"] < takeover["end"]
    assert done.recoveries == 1
    assert second.is_running
    assert not DispatchHint.objects.exists()


def test_a_step_that_always_kills_its_process_starts_once_more_than_the_cap(shop: Shop) -> None:
    shop.durable["MAX_RECOVERIES"] = 2
    execution = shop.start("deadly", "x")
    other = shop.start("quick", "y")
    for number in range(3):
        worker = shop.worker("--concurrency", "1")
        shop.wait_for_effect("begin x-b", times=number + 1)
        worker.wait(within=30)
    shop.worker()
    dead = shop.wait_for_status(execution, "dead")
    assert shop.effects().count("begin x-b") == 3
    assert shop.effects().count("begin x-a") == 1
    assert dead.error is not None
    assert "worker lost" in dead.error["message"]
    assert dead.dead_letters.count() == 1
    assert shop.wait_for_status(other, "completed").output == "y"


def test_a_body_longer_than_the_lease_keeps_it(shop: Shop) -> None:
    shop.worker()
    shop.worker()
    execution = shop.start("slow", "x", 3.0)
    done = shop.wait_for_status(execution, "completed")
    assert shop.effects() == ["begin x", "end x"]
    assert done.recoveries == 0


def test_a_hundred_executions_on_three_workers_run_each_step_once(shop: Shop) -> None:
    executions = [shop.start("quick", str(number)) for number in range(100)]
    for _ in range(3):
        shop.worker("--concurrency", "3")
    for execution in executions:
        shop.wait_for_status(execution, "completed")
    begun = [line for line in shop.effects() if line.startswith("begin")]
    assert len(begun) == len(set(begun)) == 300
