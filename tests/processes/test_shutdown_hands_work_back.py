"""SIGTERM: nothing new, running executions hand back at their next position, nothing is counted against them."""

from __future__ import annotations

from tests.processes.shop import Shop


def test_a_running_execution_is_handed_back_at_its_next_position(shop: Shop) -> None:
    shop.durable["LEASE_SECONDS"] = 30
    worker = shop.worker()
    execution = shop.start("three", "x")
    shop.wait_for_effect("begin x-b")
    worker.terminate()
    worker.wait_for_output("taking nothing new")
    shop.open("x-b")
    assert worker.wait(within=30) == 0
    released = shop.reload(execution)
    assert released.status == "pending"
    assert released.lease_token is None
    assert released.recoveries == 0
    assert [h["status"] for h in released.history()] == ["completed", "completed"]
    shop.worker()
    shop.wait_for_status(execution, "completed")
    begun = [line for line in shop.effects() if line.startswith("begin")]
    assert begun == ["begin x-a", "begin x-b", "begin x-c"]


def test_a_stuck_body_is_released_when_the_time_is_over(shop: Shop) -> None:
    shop.durable.update(LEASE_SECONDS=30, WORKER_SHUTDOWN_SECONDS=0.5)
    worker = shop.worker()
    execution = shop.start("three", "x")
    shop.wait_for_effect("begin x-b")
    worker.terminate()
    assert worker.wait(within=30) == 0
    released = shop.reload(execution)
    assert released.status == "pending"
    assert released.recoveries == 0
    shop.open("x-b")
    shop.worker()
    shop.wait_for_status(execution, "completed")


def test_sleeping_executions_hold_no_worker_and_do_not_delay_the_end(shop: Shop) -> None:
    shop.durable["LEASE_SECONDS"] = 30
    sleepers = [shop.start("sleeping", str(number)) for number in range(20)]
    worker = shop.worker("--concurrency", "2")
    for sleeper in sleepers:
        shop.wait_for_status(sleeper, "waiting")
    awake = shop.start("quick", "x")
    shop.wait_for_status(awake, "completed")
    worker.terminate()
    assert worker.wait(within=5) == 0


def test_until_idle_ends_when_nothing_is_due_and_leaves_timers_alone(shop: Shop) -> None:
    execution = shop.start("quick", "x")
    sleeper = shop.start("sleeping", "y")
    worker = shop.worker("--until-idle")
    assert worker.wait(within=30) == 0
    assert shop.reload(execution).status == "completed"
    assert shop.reload(sleeper).status == "waiting"


def test_a_timer_fires_by_itself(shop: Shop) -> None:
    shop.worker()
    execution = shop.start("nap", "x", 0.5)
    assert shop.wait_for_status(execution, "completed").output == "x"


def test_a_cancel_reaches_the_running_body_and_no_further_one_starts(shop: Shop) -> None:
    shop.worker()
    execution = shop.start("cancellable", "x")
    shop.wait_for_effect("begin x")
    assert execution.cancel(actor="ann") is True
    shop.wait_for_effect("seen True")
    assert shop.reload(execution).status == "cancelled"
    quick = shop.start("quick", "y")
    shop.wait_for_status(quick, "completed")
    assert "begin x-after" not in shop.effects()
    assert shop.reload(execution).history() == [] or shop.reload(execution).history()[0]["status"] != "completed"


def test_an_execution_past_its_timeout_ends_while_its_body_still_runs(shop: Shop) -> None:
    shop.worker()
    execution = shop.start("hurried", "x")
    shop.wait_for_effect("begin x")
    late = shop.wait_for_status(execution, "timed_out")
    shop.open("x")
    shop.wait_for_effect("end x")
    quick = shop.start("quick", "y")
    shop.wait_for_status(quick, "completed")
    assert "begin x-after" not in shop.effects()
    assert shop.reload(execution).history() == late.history()
