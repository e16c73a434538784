"""Shop: one project, with this tier's workflows, a short lease and a file of effects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django_durable import Execution
from django_durable.authoring.registry import find_workflow
from tests.services.process import Process
from tests.services.project import Project


class Shop:
    """A project whose workers are real processes; starts and looks happen in this process."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project = project
        self.folder = folder
        self.durable: dict[str, Any] = {"LEASE_SECONDS": 1.0, "TICK_SECONDS": 0.2}

    def worker(self, *arguments: str, **variables: str) -> Process:
        """A worker process that is ready."""
        self.project.own_env["DURABLE"] = json.dumps(self.durable)
        process = self.project.manage("durable", "worker", *arguments, **variables)
        process.wait_for_output("is ready")
        return process

    def start(self, name: str, *args: Any, **using: Any) -> Execution[Any]:
        """Start a workflow of this tier by its function's name."""
        execution: Execution[Any] = find_workflow(f"processes.{name}").using(**using).start(*args)
        return execution

    def reload(self, execution: Execution[Any]) -> Execution[Any]:
        """The row as it is now."""
        return Execution.objects.locate(execution.pk)

    def wait_for_status(self, execution: Execution[Any], *statuses: str, within: float = 30) -> Execution[Any]:
        """Wait until the execution is in one of these statuses."""
        self.project.wait_for(lambda: self.reload(execution).status in statuses, within=within)
        return self.reload(execution)

    def wait_for_effect(self, line: str, *, times: int = 1) -> None:
        """Wait until a body has written this line, so often."""
        self.project.wait_for(lambda: self.effects().count(line) >= times, within=30)

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
