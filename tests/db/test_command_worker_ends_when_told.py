"""``durable worker``: ready, idle, asked to stop, told to; each end with its exit code."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from django_durable import Context, Execution, step, workflow
from django_durable.cli.stopping import asked_to_stop
from django_durable.models import DispatchHint
from tests.calling import durable
from tests.driving import USING
from tests.services.process import Process
from tests.services.project import Project

# The worker's process knows the workflows of this file; `entered` tells where a body is.
WORKER = """
from django.conf import settings
from django.core.management import execute_from_command_line
from django.test import override_settings
import tests.db.test_command_worker_ends_when_told
override_settings(DURABLE=dict(settings.DURABLE, **{durable!r})).enable()
execute_from_command_line(["manage.py", "durable", "worker", *{options!r}])
"""


@step
def enter(name: str) -> str:
    print(f"entered {name}", flush=True)
    return name


@step
def stay() -> None:
    """A body that ends when nobody needs it any more."""
    print("entered a long body", flush=True)
    threading.Event().wait(600)


@workflow("worker.chain")
def chain(ctx: Context, length: int) -> int:
    for number in range(length):
        ctx.step(enter, str(number))
    return length


@workflow("worker.sleepy")
def sleepy(ctx: Context) -> None:
    ctx.step(enter, "before")
    ctx.sleep(3600)


@workflow("worker.stuck")
def stuck(ctx: Context) -> None:
    ctx.step(stay)


def work(project: Project, *options: str, **durable: Any) -> Process:
    return project.python(WORKER.format(options=options, durable=durable))


def status(execution: Execution[Any]) -> str:
    return str(Execution.objects.locate(execution.pk).status)


def test_until_idle_runs_what_is_due_and_waits_for_no_timer(project: Project) -> None:
    done, waiting, later = chain.start(3), sleepy.start(), chain.using(run_after=3600).start(1)

    finished = work(project, "--until-idle").finish()
    assert finished.code == 0
    assert [status(one) for one in (done, waiting, later)] == ["completed", "waiting", "pending"]
    assert len(finished.stdout.splitlines()) == 4
    assert finished.stderr.startswith("durable worker ")
    assert finished.stderr.endswith(f" is ready: database {USING}, queues all, concurrency 4\n")


def test_queues_and_turns_can_be_bounded(project: Project) -> None:
    slow, other, *durables = [
        chain.using(queue="slow").start(1),
        chain.using(queue="other").start(1),
        *(chain.start(1) for _ in range(3)),
    ]

    first = work(project, "--until-idle", "--queues", "slow,other", "--concurrency", "1").finish()
    assert first.code == 0
    assert "queues slow, other, concurrency 1" in first.stderr
    assert (status(slow), status(other)) == ("completed", "completed")
    assert {status(one) for one in durables} == {"pending"}

    assert work(project, "--max-turns", "2").finish().code == 0
    assert sorted(status(one) for one in durables) == ["completed", "completed", "pending"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_that_is_asked_to_stop_ends_with_zero(project: Project, number: signal.Signals) -> None:
    worker = work(project)
    worker.wait_for_output("is ready")
    os.kill(worker.pid, number)

    finished = worker.finish(within=20)
    assert finished.code == 0
    assert f"{number.name}: taking nothing new" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_busy_worker_hands_back_at_the_next_position(project: Project) -> None:
    execution = chain.start(100_000)
    worker = work(project)
    worker.wait_for_output("entered 3")
    worker.terminate()

    assert worker.finish(within=30).code == 0
    execution = Execution.objects.locate(execution.pk)
    assert (execution.status, execution.recoveries) == ("pending", 0)
    assert DispatchHint.objects.get().token is None


def test_a_body_that_does_not_end_is_left_behind_with_exit_code_zero(project: Project) -> None:
    execution = stuck.start()
    worker = work(project, WORKER_SHUTDOWN_SECONDS=0.1)
    worker.wait_for_output("entered a long body")
    worker.terminate()

    finished = worker.finish(within=30)
    assert finished.code == 0
    assert "is still in a body at shutdown; it is released" in finished.stderr
    assert status(execution) == "pending"


def test_a_second_signal_exits_at_once(project: Project) -> None:
    stuck.start()
    worker = work(project)
    worker.wait_for_output("entered a long body")
    worker.terminate()
    worker.wait_for_output("SIGTERM: taking nothing new")
    worker.terminate()

    # The default of 30 s for running bodies has not been waited out.
    assert worker.wait(within=15) == 128 + signal.SIGTERM
    assert "SIGTERM: exiting at once" in worker.stderr


@pytest.mark.django_db
def test_a_plane_that_nobody_configured_is_not_found() -> None:
    called = durable("worker", "--plane", "eu", "--until-idle")
    assert called.code == 3
    assert "no plane 'eu' is configured" in called.error


@pytest.mark.django_db(transaction=True)
def test_in_process_it_ends_idle_and_gives_the_signal_handlers_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    execution = chain.start(1)

    called = durable("worker", "--plane", USING, until_idle=True, queues=["durable"], concurrency=1)
    assert (called.code, called.out) == (0, "")
    assert status(execution) == "completed"
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    assert signal.set_wakeup_fd(-1) == -1


class Asked:
    """Notes each call, and lets the test wait for it."""

    def __init__(self) -> None:
        self.numbers: list[tuple[str, int]] = []
        self.changed = threading.Event()

    def noting(self, which: str) -> Callable[[int], None]:
        def note(number: int) -> None:
            self.numbers.append((which, number))
            self.changed.set()

        return note

    def wait(self) -> None:
        assert self.changed.wait(30)
        self.changed.clear()


def test_signals_are_told_apart_and_others_are_left_alone() -> None:
    asked = Asked()
    old = signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
    try:
        with asked_to_stop(asked.noting("first"), asked.noting("again")):
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGINT)
            asked.wait()
            signal.raise_signal(signal.SIGTERM)
            asked.wait()
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert asked.numbers == [("first", signal.SIGINT), ("again", signal.SIGTERM)]


def test_a_signal_is_heard_while_the_main_thread_holds_the_lock_of_the_event() -> None:
    """A handler that sets an event would wait here for its own thread, for ever."""
    lock = threading.Lock()  # an event has one like it, and takes it in set() and in wait()
    heard, done = threading.Event(), threading.Event()

    def stop(_number: int) -> None:
        heard.set()
        with lock:
            done.set()

    with asked_to_stop(stop, stop):
        with lock:
            signal.raise_signal(signal.SIGTERM)
            assert heard.wait(30)
            assert not done.is_set()
        assert done.wait(30)


def test_outside_the_main_thread_nothing_is_installed() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def inside() -> None:
        with asked_to_stop(lambda _number: None, lambda _number: None):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [before]
