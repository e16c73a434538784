"""CeleryFleet: prefork Celery workers and beat, killed child by child or with everything that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from testproject.demo.body_log import Body
from testproject.demo.fleet import Deed, Fleet

__all__ = ["CeleryFleet"]

CELERY = [sys.executable, "-m", "celery", "-A", "testproject"]


class CeleryFleet(Fleet):
    """``celery worker`` and ``celery beat``. A worker is a process group of its own: it dies with its children."""

    what = "Celery workers (prefork) and beat"

    def __init__(self, folder: Path, size: int) -> None:
        super().__init__(folder, size)
        self._strikes = 0

    @property
    def argv(self) -> Sequence[str]:
        options = ["--pool", "prefork", "--concurrency", "2", "--loglevel", "WARNING"]
        # The name must be the worker's own, or Celery warns of a twin on this machine.
        return [*CELERY, "worker", *options, "--hostname", f"demo-{self._started}@%h"]

    def start(self) -> None:
        super().start()
        schedule = ["--schedule", str(self._folder / "beat-schedule"), "--pidfile", ""]
        self.helpers.append(self._launch([*CELERY, "beat", "--loglevel", "WARNING", *schedule], "beat"))

    def strike(self, body: Body) -> Deed:
        """Kill the pool's process that runs the body, or, every third time, the whole worker."""
        self._strikes += 1
        victim = next((worker for worker in self.workers if worker.pid == body.parent_pid), None)
        if victim is None or self._strikes % 3:
            os.kill(body.pid, signal.SIGKILL)
            return Deed(pid=body.pid, text=f"pool process {body.pid} killed, Celery replaces it")
        os.killpg(victim.pid, signal.SIGKILL)
        successor = self._replace(victim)
        return Deed(pid=victim.pid, text=f"Celery worker {victim.pid} killed with its pool, {successor.pid} started")

    def destroy(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
        super().destroy()

    def _launch_worker(self) -> subprocess.Popen[bytes]:
        return self._launch(self.argv, "worker", own_group=True)
