"""Yard: a project with this folder's workflows, and what its workers did."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db import connection

import tests.field.rig.workflows  # noqa: F401  (this process starts what the workers run)
from django_durable import Execution
from django_durable.authoring.registry import find_workflow
from tests.processes.shop import Shop
from tests.services.process import Process
from tests.services.project import Project


class Yard(Shop):
    """Its workers are real processes with a lease of a second; starts and looks happen in this process."""

    def __init__(self, project: Project, folder: Path) -> None:
        super().__init__(project, folder)
        project.own_env.update(DJANGO_SETTINGS_MODULE="tests.field.rig.settings", EFFECTS=str(folder))
        self.durable.update(POLL_SECONDS=0.2)

    def start(self, name: str, *args: Any, **using: Any) -> Execution[Any]:
        """Start a workflow of this folder by its function's name."""
        execution: Execution[Any] = find_workflow(f"field.{name}").using(**using).start(*args)
        return execution

    def workers(self, count: int, *arguments: str, **variables: str) -> list[Process]:
        """Several workers, started side by side, all of them ready."""
        self.configure()
        started = [self.project.manage("durable", "worker", *arguments, **variables) for _ in range(count)]
        for process in started:
            process.wait_for_output("is ready")
        return started

    def configure(self) -> None:
        """Give processes that are started otherwise the same ``DURABLE``."""
        self.project.own_env["DURABLE"] = json.dumps(self.durable)

    def show(self, execution: Execution[Any]) -> dict[str, Any]:
        """What ``durable show`` tells an operator."""
        self.configure()
        shown: dict[str, Any] = json.loads(
            self.project.run_manage("durable", "show", str(execution.pk), "--json").stdout
        )
        return shown

    def begun(self) -> list[str]:
        """Which bodies were begun, in order."""
        return [line.removeprefix("begin ") for line in self.effects() if line.startswith("begin ")]

    def complaints(self) -> str:
        """What all processes wrote to stderr, without the workers' greetings."""
        lines = "".join(process.stderr for process in self.project.processes).splitlines()
        return "\n".join(line for line in lines if not line.startswith("durable worker "))


def freeze_between_writes(process: Process) -> None:
    """Freeze it while it holds no lock of the whole database: SQLite has one, and everybody would stand still."""
    process.freeze()
    while connection.vendor == "sqlite" and _is_locked(connection.settings_dict["NAME"]):
        process.thaw()
        process.freeze()


def _is_locked(file: str) -> bool:
    with closing(sqlite3.connect(file, timeout=0.5)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        return False


def kill_together(processes: list[Process]) -> None:
    """``SIGKILL`` them all before waiting for the first to be gone."""
    subprocess.run(["kill", "-9", *[str(process.pid) for process in processes]], check=True)
    for process in processes:
        process.kill()
