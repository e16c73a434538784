"""Fleet: the test project with a broker, Celery workers and beats as real processes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from celery import Celery
from django.db import connection

from django_durable import Execution
from django_durable.authoring.registry import find_workflow
from django_durable.models import DispatchHint
from testproject.services.valkey import OwnValkey
from tests.services.process import Finished, Process
from tests.services.project import Project

QUICK = {"LEASE_SECONDS": 1.5, "TICK_SECONDS": 0.25}
# Whoever waits for a tick of this project waits longer than any test: what happens is done by messages alone.
WITHOUT_TICKS = {"LEASE_SECONDS": 60.0, "TICK_SECONDS": 60.0}
BRISK = ("--without-mingle", "--without-gossip", "--loglevel", "INFO")


class Fleet:
    """Starts and looks happen in this process, which sends no messages: what it starts is found by a tick."""

    def __init__(self, project: Project, valkey: OwnValkey, folder: Path) -> None:
        self.project = project
        self.valkey = valkey
        self.folder = folder
        self.durable: dict[str, Any] = dict(QUICK)
        self.settings: dict[str, Any] = {}
        self.app = "testproject"

    @property
    def backend(self) -> str:
        """Which database the project is on."""
        return connection.vendor

    def configure(self) -> None:
        """Have processes that start from now on use ``durable`` and ``settings``."""
        self.project.own_env.update(DURABLE=json.dumps(self.durable), CELERY=json.dumps(self.settings))

    def worker(self, *arguments: str, ready: bool = True) -> Process:
        """A worker, by default prefork with two processes, that accepts messages."""
        options = arguments if {"-c", "-P"} & set(arguments) else ("-c", "2", *arguments)
        process = self._celery("worker", "-n", f"w{len(self.project.processes)}@%h", *BRISK, *options)
        if ready:
            process.wait_for_output(" ready.")
        return process

    def beat(self) -> Process:
        """A beat of its own."""
        schedule = self.folder / f"beat-{len(self.project.processes)}"
        return self._celery("beat", "--loglevel", "INFO", "-s", str(schedule), "--pidfile", "")

    def run(self, code: str, *, within: float = 60, **variables: str) -> Finished:
        """Run Python in a process that announces what it commits, as a web process does."""
        self.configure()
        return self.project.run_python(code, expect=0, within=within, **variables)

    def send(self, hint_id: object, *, task: str = "django_durable.run", queue: str = "durable") -> None:
        """Put a message into the broker, right or wrong."""
        with Celery("sender", broker=self.valkey.url, set_as_current=False) as sender:
            sender.send_task(task, args=(hint_id,), queue=queue, ignore_result=True)

    def _celery(self, *arguments: str) -> Process:
        self.configure()
        argv = [sys.executable, "-m", "celery", "-A", self.app, *arguments]
        return self.project.spawn(argv, name=arguments[0])

    def start(self, name: str, *args: Any, **using: Any) -> Execution[Any]:
        """Start a workflow of this tier by its function's name, from this process."""
        execution: Execution[Any] = find_workflow(f"celery.{name}").using(**using).start(*args)
        return execution

    def outputs(self, executions: Iterable[Execution[Any]], *, within: float = 30) -> list[Any]:
        """What they returned, once all have completed."""
        waited = list(executions)
        return [self.wait_for_status(each, "completed", within=within).output for each in waited]

    def wait_for_status(self, execution: Execution[Any], *statuses: str, within: float = 30) -> Execution[Any]:
        """The execution, once it is in one of these statuses."""
        self.project.wait_for(lambda: self.reload(execution).status in statuses, within=within)
        return self.reload(execution)

    def wait_until_idle(self) -> None:
        """Wait until no work is in flight."""
        self.project.wait_for(lambda: not DispatchHint.objects.exists())

    def reload(self, execution: Execution[Any]) -> Execution[Any]:
        """The row as it is now."""
        return Execution.objects.locate(execution.pk)

    def wait_for_effect(self, line: str, *, times: int = 1) -> None:
        """Wait until a body has written this line, so often."""
        self.project.wait_for(lambda: self.effects().count(line) >= times, because=f"{line!r} in {self.lines()}")

    def effects(self) -> list[str]:
        """What bodies did, in order, without their process."""
        return [line.partition(" ")[2] for line in self.lines()]

    def lines(self) -> list[str]:
        """What bodies did, in order: process and line."""
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []

    def open(self, name: str) -> None:
        """Open a barrier."""
        (self.folder / f"open-{name}").touch()
