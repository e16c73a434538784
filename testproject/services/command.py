"""``python -m testproject.services.<server> [options] -- command …``: run a command beside a server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

__all__ = ["run_beside", "split_command"]


def split_command(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands before the first ``--``, and the command after it; exits with usage where there is none."""
    before, dashes, command = list(argv), "--" in argv, []
    if dashes:
        at = before.index("--")
        before, command = before[:at], before[at + 1 :]
    if not command:
        sys.exit("usage: python -m testproject.services.<server> [options] -- command [argument …]")
    return before, command


def run_beside(variables: Mapping[str, str], command: Sequence[str]) -> int:
    """Run the command with these variables added and return its exit code, 128 + n where signal n ended it.

    Ctrl-C reaches the command through the terminal and SIGTERM is passed on: this process outlives it, and
    only then stops the server.
    """
    process = subprocess.Popen(command, env={**os.environ, **variables})

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = process.wait()
    return code if code >= 0 else 128 - code
