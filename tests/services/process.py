"""A real process under test: killed, frozen, thawed or asked to stop, its output kept in files."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.services.waiting import wait_until

__all__ = ["Finished", "Process"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a process ended and what it wrote; the code is −n where signal n ended it."""

    code: int
    stdout: str
    stderr: str


class Process:
    """One subprocess in a session of its own, so that ``kill_group()`` reaches what it started."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        folder: Path,
        name: str,
        stdin: str = "",
    ) -> None:
        self.name = name
        self.argv = list(argv)
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        (folder / f"{name}.in").write_text(stdin)
        with (
            (folder / f"{name}.in").open() as source,
            self._out.open("wb") as out,
            self._err.open("wb") as err,
        ):
            self._popen = subprocess.Popen(
                self.argv,
                env=dict(env),
                cwd=cwd,
                stdin=source,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended; a frozen process is running."""
        return self._popen.poll() is None

    @property
    def stdout(self) -> str:
        """What it has written so far."""
        return self._out.read_text(errors="replace")

    @property
    def stderr(self) -> str:
        """What it has complained about so far."""
        return self._err.read_text(errors="replace")

    def kill(self) -> None:
        """``SIGKILL`` the process alone, and wait until it is gone."""
        self._popen.kill()
        self._popen.wait()

    def kill_group(self) -> None:
        """``SIGKILL`` the process and everything it started, and wait until the process is gone."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._popen.wait()

    def freeze(self) -> None:
        """``SIGSTOP``: returns once it stands still, as under a suspended machine or a long pause."""
        self._popen.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """``SIGCONT``: it goes on where it stood."""
        self._popen.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """``SIGTERM``: it is asked to stop; ``wait()`` gives the exit code."""
        self._popen.terminate()

    def wait(self, within: float = 60.0) -> int:
        """Its exit code; ``AssertionError`` where it still runs after that many seconds."""
        try:
            return self._popen.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {within:g} s; {self._output()}") from None

    def finish(self, within: float = 60.0) -> Finished:
        """Wait for its end, then its code and output."""
        return Finished(code=self.wait(within), stdout=self.stdout, stderr=self.stderr)

    def wait_for_output(self, text: str, within: float = 60.0) -> None:
        """Wait until it has written this text, to either stream; ``AssertionError`` where it ends without."""

        def written() -> bool:
            running = self.is_running  # asked first: what it wrote before its end is then in the files
            if text in self.stdout or text in self.stderr:
                return True
            if not running:
                raise AssertionError(
                    f"{self.name} ended with {self._popen.returncode} before {text!r}; {self._output()}"
                )
            return False

        wait_until(written, within=within, because=f"{self.name} writes {text!r}")

    def _output(self) -> str:
        return f"stdout:\n{self.stdout}\nstderr:\n{self.stderr}"
