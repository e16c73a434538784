"""One server process with a folder of its own below the temp folder; both go when their owner goes.

Three ways to go: ``remove()``, the end of the interpreter, and, where the owner was killed, a guard: a shell
that reads a line from the owner and, where its input ends instead, does what the owner could not.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ServiceError", "Throwaway"]

# A socket's path may have 107 bytes (103 on macOS); a temp folder deeper than this leaves no room for the
# name.
LONGEST_TEMP_FOLDER = 60

GUARD = """
read -r dismissed && exit 0
kill -QUIT "$1" 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
done
kill -KILL "$1" 2>/dev/null
rm -rf "$0"
"""


class ServiceError(RuntimeError):
    """A server that tests or demo need cannot be had here; the text says what to install."""


def _temp_folder(*, for_others: bool) -> Path:
    """The temp folder; ``/tmp`` where its path is too long, or the server's user could not enter it."""
    folder = Path(tempfile.gettempdir()).resolve()
    closed = for_others and not all(path.stat().st_mode & stat.S_IXOTH for path in (folder, *folder.parents))
    return Path("/tmp") if closed or len(str(folder)) > LONGEST_TEMP_FOLDER else folder


class Throwaway:
    """A folder, and at most one process in it at a time."""

    def __init__(self, name: str, *, user: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_temp_folder(for_others=user is not None)))
        account = pwd.getpwnam(user) if user else None
        self._user = account.pw_uid if account else None
        self._group = account.pw_gid if account else None
        self._groups: list[str | int] | None = [] if account else None
        if account:
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        self.log_path = self.folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        atexit.register(self.remove)

    @property
    def pid(self) -> int:
        """The server's process id; ``ServiceError`` while it is stopped."""
        if self._process is None:
            raise ServiceError(f"The server in {self.folder} is stopped; call start() first.")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process that was started is still there."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What the server has written so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def run(self, argv: Sequence[str | Path]) -> str:
        """Run a short command as the server's user; its output, in a ``ServiceError`` where it fails."""
        with open(os.devnull, "rb") as nothing:
            done = subprocess.run(
                [str(part) for part in argv],
                stdin=nothing,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self.folder,
                env=self._environment(),
                user=self._user,
                group=self._group,
                extra_groups=self._groups,
            )
        if done.returncode:
            raise ServiceError(f"{argv[0]} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def start(self, argv: Sequence[str | Path]) -> None:
        """Start the server process; it may not be ready yet."""
        if self.is_running:
            raise ServiceError(f"The server in {self.folder} is running already; call stop() first.")
        with open(self.log_path, "ab") as log, open(os.devnull, "rb") as nothing:
            self._process = subprocess.Popen(
                [str(part) for part in argv],
                stdin=nothing,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=self._environment(),
                start_new_session=True,  # Ctrl-C is for the owner, which then stops the server in good order
                user=self._user,
                group=self._group,
                extra_groups=self._groups,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(self.folder), str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def stop(self, how: signal.Signals, *, within: float = 30.0) -> None:
        """Send the signal, wait that many seconds for the end, then ``SIGKILL``; the folder stays."""
        process, self._process = self._process, None
        self._dismiss_guard()
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def remove(self) -> None:
        """End the process and delete the folder. A fork of the owner does neither."""
        if os.getpid() != self._owner:
            return
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.remove)

    def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.communicate(b"dismissed\n")

    def _environment(self) -> dict[str, str]:
        # Nothing of ours: a PGDATA or LD_LIBRARY_PATH of the caller would reach the server.
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "LC_ALL": "C",
            "TZ": "UTC",
        }
