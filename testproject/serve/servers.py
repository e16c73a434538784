"""Servers: Django's development server and an embedded worker, both gone when the block ends."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from types import TracebackType
from typing import Self

from testproject.demo.stage import ROOT, StageError

__all__ = ["Servers"]

START_SECONDS = 60.0
STOP_SECONDS = 30.0
LOOK_SECONDS = 0.1


class Servers:
    """Two processes that write to this terminal. Each has a process group of its own: Ctrl-C reaches this process
    alone, which then asks both to stop."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        host, port = self._address
        try:
            self._launch("the worker", "durable", "worker", "--verbosity", "0")
            self._launch("the admin", "runserver", "--noreload", "--skip-checks", f"{host}:{port}")
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def wait_until_up(self) -> None:
        """Return once the admin answers. Raises ``StageError`` where it does not."""
        deadline = time.monotonic() + START_SECONDS
        while self._ended() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(self._address, timeout=1.0).close()
            except OSError:
                time.sleep(LOOK_SECONDS)
            else:
                return
        raise StageError(f"The admin did not come up within {START_SECONDS:g} s; what it wrote is above.")

    def wait(self) -> str:
        """Which of them ended by itself, once one does."""
        while (ended := self._ended()) is None:
            time.sleep(LOOK_SECONDS)
        return ended

    def _launch(self, name: str, *arguments: str) -> None:
        argv = [sys.executable, str(ROOT / "manage.py"), *arguments]
        self._processes[name] = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, process_group=0)

    def _ended(self) -> str | None:
        for name, process in self._processes.items():
            if process.poll() is not None:
                return name
        return None

    def _stop(self) -> None:
        """Ask both; whoever is still there after that, or when somebody presses Ctrl-C again, is killed."""
        try:
            for process in self._processes.values():
                process.terminate()
            deadline = time.monotonic() + STOP_SECONDS
            for process in self._processes.values():
                try:
                    process.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    pass
        finally:
            for process in self._processes.values():
                process.kill()
                process.wait()
