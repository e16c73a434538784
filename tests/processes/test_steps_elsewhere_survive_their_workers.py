"""A step on another queue: served by whoever serves that, repeated when its worker is killed, handed back at SIGTERM."""

from __future__ import annotations

from django_durable.models import Checkpoint, DispatchHint
from tests.processes.shop import Shop
from tests.processes.workflows import REMOTE

TURNS = ("--queues", "durable")
SERVES = ("--queues", REMOTE)
BOTH = ("--queues", f"durable,{REMOTE}")


def test_only_a_worker_of_its_queue_runs_it(shop: Shop) -> None:
    turns = shop.worker(*TURNS)
    execution = shop.start("elsewhere", "x")
    shop.wait_for_status(execution, "waiting")
    assert shop.effects() == ["begin x-a", "end x-a"]
    steps = shop.worker(*SERVES)
    shop.wait_for_effect("begin x-b")
    shop.open("x-b")
    assert shop.wait_for_status(execution, "completed").output == "x-c"
    by = {line.partition(" ")[2]: int(line.partition(" ")[0]) for line in shop.lines()}
    assert by["begin x-a"] == by["begin x-c"] == turns.pid
    assert by["begin x-b"] == steps.pid
    assert not DispatchHint.objects.exists()


def test_a_killed_worker_is_replaced_and_there_is_one_result(shop: Shop) -> None:
    shop.worker(*TURNS)
    first = shop.worker(*SERVES)
    execution = shop.start("elsewhere", "x")
    shop.wait_for_effect("begin x-b")
    shop.worker(*SERVES)
    first.kill()
    shop.wait_for_effect("begin x-b", times=2)
    shop.open("x-b")
    assert shop.wait_for_status(execution, "completed").output == "x-c"
    assert [shop.effects().count(f"begin x-{letter}") for letter in "abc"] == [1, 2, 1]
    step = Checkpoint.objects.get(position=1)
    assert (step.status, step.attempt, step.recoveries) == ("completed", 1, 1)


def test_a_step_that_always_kills_its_process_makes_the_execution_dead(shop: Shop) -> None:
    shop.durable["MAX_RECOVERIES"] = 1
    shop.worker(*TURNS)
    execution = shop.start("deadly_elsewhere", "x")
    for number in range(2):
        worker = shop.worker(*SERVES)
        shop.wait_for_effect("begin x", times=number + 1)
        worker.wait(within=30)
    shop.worker(*SERVES)
    dead = shop.wait_for_status(execution, "dead")
    assert shop.effects() == ["begin x"] * 2
    assert dead.error is not None and "lost its worker" in dead.error["message"]
    assert dead.dead_letters.count() == 1


def test_a_shutdown_hands_it_to_another_worker_at_once(shop: Shop) -> None:
    shop.durable |= {"LEASE_SECONDS": 30.0, "WORKER_SHUTDOWN_SECONDS": 0.5}
    shop.worker(*TURNS)
    first = shop.worker(*SERVES)
    execution = shop.start("elsewhere", "x")
    shop.wait_for_effect("begin x-b")
    shop.worker(*SERVES)
    first.terminate()
    assert first.wait(within=20) == 0
    shop.wait_for_effect("begin x-b", times=2)
    shop.open("x-b")
    shop.wait_for_status(execution, "completed")
    assert Checkpoint.objects.get(position=1).recoveries == 0


def test_a_cancel_reaches_the_body(shop: Shop) -> None:
    shop.worker(*BOTH)
    execution = shop.start("cancellable_elsewhere", "x")
    shop.wait_for_effect("begin x")
    assert execution.cancel(actor="ann")
    shop.wait_for_effect("seen True")
    assert shop.reload(execution).status == "cancelled"


def test_silence_ends_an_attempt_and_the_next_knows_the_last_heartbeat(shop: Shop) -> None:
    shop.worker(*BOTH)
    execution = shop.start("silent_elsewhere", "x")
    assert shop.wait_for_status(execution, "completed").output == "x"
    assert shop.effects() == ["begin x 1 None", "begin x 2 {'at': 7}"]


def test_an_attempt_that_overruns_is_followed_by_the_next(shop: Shop) -> None:
    shop.worker(*BOTH)
    execution = shop.start("overrunning_elsewhere", "x")
    assert shop.wait_for_status(execution, "completed").output == "x 2"
    shop.open("x")
    assert shop.effects() == ["begin x 1", "begin x 2"]


def test_what_nobody_picks_up_fails_in_time(shop: Shop) -> None:
    shop.worker(*TURNS)
    execution = shop.start("unserved_elsewhere", "x")
    done = shop.wait_for_status(execution, "completed")
    assert done.output == "django_durable.errors.StepTimeout"
    assert shop.effects() == []
