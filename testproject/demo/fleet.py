"""Fleet: the worker processes of the demo, each replaced as soon as it is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testproject.demo.body_log import Body
from testproject.demo.stage import ROOT

__all__ = ["Deed", "EmbeddedFleet", "Fleet"]

STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """What was done to a fleet: the process that was killed, its children included, and a text for people."""

    pid: int
    text: str


class Fleet:
    """A number of workers that do the same. What they write goes to one file each in the stage's folder."""

    what: str
    """Of what kind they are, for people."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self._size = size
        self._started = 0
        self.workers: list[subprocess.Popen[bytes]] = []
        self.helpers: list[subprocess.Popen[bytes]] = []

    @property
    def argv(self) -> Sequence[str]:
        """The command of one worker."""
        raise NotImplementedError

    def start(self) -> None:
        """Start all of them; they may not be at work yet."""
        self.refill()

    def strike(self, body: Body) -> Deed:
        """``SIGKILL`` the worker that this body runs in, and replace it at once."""
        victim = next(worker for worker in self.workers if worker.pid == body.pid)
        victim.kill()
        successor = self._replace(victim)
        return Deed(pid=victim.pid, text=f"worker {victim.pid} killed, {successor.pid} started")

    def kill_all(self) -> set[int]:
        """``SIGKILL`` every worker; their process ids. ``refill`` starts as many new ones."""
        gone = {worker.pid for worker in self.workers}
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.workers.clear()
        return gone

    def refill(self) -> None:
        """Start workers until there are as many as at the beginning."""
        while len(self.workers) < self._size:
            self.workers.append(self._launch_worker())

    def losses(self) -> list[str]:
        """Who has ended without being killed by us: nobody, if all is well."""
        return [
            f"process {process.pid} ended by itself with code {process.returncode}"
            for process in (*self.workers, *self.helpers)
            if process.poll() is not None
        ]

    def stop(self) -> list[str]:
        """Ask all of them to stop, as a deployment does; what did not end with code 0."""
        everybody = [*self.workers, *self.helpers]
        for process in everybody:
            process.terminate()
        return [problem for process in everybody if (problem := _end_of(process))]

    def destroy(self) -> None:
        """Kill whatever is left, also after an error."""
        for process in (*self.workers, *self.helpers):
            if process.poll() is None:
                process.kill()
                process.wait()

    def complaints(self, lines: int = 15) -> str:
        """The last lines that the processes have written."""
        logs = {path.name: path.read_text(errors="replace") for path in sorted(self._folder.glob("*.log"))}
        ends = [[f"-- {name}:", *text.splitlines()[-lines:]] for name, text in logs.items() if text.strip()]
        return "\n".join(line for end in ends for line in end)

    def _replace(self, victim: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        victim.wait()
        successor = self._launch_worker()
        self.workers[self.workers.index(victim)] = successor
        return successor

    def _launch_worker(self) -> subprocess.Popen[bytes]:
        return self._launch(self.argv, "worker")

    def _launch(self, argv: Sequence[str], name: str, *, own_group: bool = False) -> subprocess.Popen[bytes]:
        self._started += 1
        with (self._folder / f"{self._started:02d}-{name}.log").open("wb") as log:
            return subprocess.Popen(
                argv,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0 if own_group else None,
            )


class EmbeddedFleet(Fleet):
    """``manage.py durable worker``: nothing but the database."""

    what = "embedded workers"

    @property
    def argv(self) -> Sequence[str]:
        return [sys.executable, str(ROOT / "manage.py"), "durable", "worker", "--concurrency", "4"]


def _end_of(process: subprocess.Popen[bytes]) -> str:
    try:
        code = process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        return f"process {process.pid} did not stop within {STOP_SECONDS:g} s of SIGTERM"
    return f"process {process.pid} ended with code {code} after SIGTERM" if code else ""
