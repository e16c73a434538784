"""Real worker processes under real ``SIGKILL``, at random points of their work."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from django_durable import Execution
from django_durable.models import Checkpoint, DeadLetter, DispatchHint
from testproject.shop.models import Order
from tests.crash import flows, liveness
from tests.crash.ledger import VARIABLE, Ledger
from tests.services.process import Process
from tests.services.project import Project

KILLS = 20
EXECUTIONS = 30
SEED = int(os.environ.get("CRASH_SEED", "20261130"))

# Everything is imported once; each worker is a fork, so that the next one is there as soon as one is killed.
NURSERY = """
    import os
    from django.conf import settings
    settings.DURABLE = {"LEASE_SECONDS": 1.0, "TICK_SECONDS": 0.5, "WORKER_CONCURRENCY": 3}
    import tests.crash.flows
    from django_durable.runtime.worker import Worker
    while True:
        pid = os.fork()
        if pid == 0:
            Worker().run()
            os._exit(0)
        os.write(1, b"worker %d\\n" % pid)
        os.waitpid(pid, 0)
"""


class Nursery:
    """A process that always has one worker running."""

    def __init__(self, project: Project, ledger: Ledger) -> None:
        self._process: Process = project.python(NURSERY, **{VARIABLE: str(ledger.path)})
        self.born = 0
        self.worker = self._wait_for_next(project)

    def _wait_for_next(self, project: Project) -> int:
        def pids() -> list[int]:
            pids = [int(line.split()[1]) for line in self._process.stdout.splitlines() if line.startswith("worker ")]
            assert self._process.is_running, self._process.stderr
            return pids if len(pids) > self.born else []

        found = project.wait_for(pids, because="a worker is born")
        self.born = len(found)
        return found[-1]

    def kill(self, project: Project) -> None:
        """``SIGKILL`` the worker and wait for the next one."""
        os.kill(self.worker, signal.SIGKILL)
        self.worker = self._wait_for_next(project)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "crash-ledger.sqlite3"))
    made = Ledger()
    made.create()
    return made


def test_a_killed_worker_process_loses_and_doubles_nothing(project: Project, ledger: Ledger) -> None:
    chance = random.Random(SEED)
    marks = [f"k{number:03d}" for number in range(EXECUTIONS)]
    for mark in marks:
        flows.everything.using(key=mark).start(mark)
    unsent = chance.sample(marks, len(marks))
    nurseries = [Nursery(project, ledger), Nursery(project, ledger)]
    done_before: list[tuple[set[tuple[str, str]], int]] = []
    for _ in range(KILLS):
        goal = len(ledger.calls()) + chance.randint(1, 6)
        project.wait_for(partial(_came_so_far, ledger, goal, unsent))
        threading.Event().wait(chance.uniform(0, 0.02))
        chance.choice(nurseries).kill(project)
        done_before.append((_finished_steps(), len(ledger.calls())))
        for mark in [unsent.pop() for _ in range(min(2, len(unsent)))]:
            flows.everything.signal(mark, "go", "yes")
    while unsent:
        flows.everything.signal(unsent.pop(), "go", "yes")
    project.wait_for(lambda: not Execution.objects.active().exists(), because="everything ends", within=90)
    killed = sum(nursery.born - 1 for nursery in nurseries)
    project.end()

    assert killed == KILLS
    assert any('"lease expired"' in takeovers for takeovers in Execution.objects.values_list("takeovers", flat=True))
    for execution in Execution.objects.all():
        mark = execution.key
        results = [f"{mark}-{n} done" for n in (0, 1, 3)] + ["yes"] + [f"{mark}-{n} done" for n in (6, 7, 8)]
        assert (execution.status, execution.output) == ("completed", results), f"seed {SEED}: {execution.error}"
        assert [entry["position"] for entry in execution.history()] == list(range(9))
    _check_effects(ledger, marks, done_before)
    assert not DispatchHint.objects.exists()
    assert not DeadLetter.objects.exists()
    assert liveness.violations() == liveness.doctors_violations() == []


def _came_so_far(ledger: Ledger, goal: int, unsent: list[str]) -> bool:
    return len(ledger.calls()) >= goal or not _unfinished(unsent)


def _unfinished(unsent: list[str]) -> bool:
    """Whether the workers have anything left to do before the next signal."""
    return DispatchHint.objects.exists() or (not unsent and Execution.objects.active().exists())


def _finished_steps() -> set[tuple[str, str]]:
    rows = Checkpoint.objects.filter(kind="step", status="completed").values_list("execution_id", "position")
    return {(str(execution_id), str(position)) for execution_id, position in rows}


def _check_effects(ledger: Ledger, marks: list[str], done_before: list[tuple[set[tuple[str, str]], int]]) -> None:
    calls, effects = ledger.calls(), ledger.effects()
    labels = Counter(label for _key, label, _execution in effects)
    assert labels == {f"{mark}-{n}": 1 for mark in marks for n in (0, 1, 3, 6, 7, 8)}
    orders = Counter(Order.objects.values_list("payment_id", flat=True))
    assert orders == {f"{mark}-{n}": 1 for mark in marks for n in (1, 7)}
    starts = Counter((call.key, call.attempt) for call in calls if call.place == "3")
    assert [key for key, number in starts.items() if number > 1] == [], "an at-most-once attempt began twice"
    for done, number in done_before:
        again = [call for call in calls[number:] if (call.execution, call.place) in done]
        assert again == [], f"seed {SEED}: a body ran again although its result was committed"
    latest: dict[str, int] = {}
    for call in calls:
        assert call.attempt >= latest.get(call.key, 0), f"seed {SEED}: an attempt's number went back"
        latest[call.key] = call.attempt
