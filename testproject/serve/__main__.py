"""``python -m testproject.serve [--port N]``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

import django

from testproject.demo.stage import StageError, staged

SETTINGS = "testproject.serve.settings"


def main(argv: Sequence[str] | None = None) -> int:
    """0 where it was stopped, 1 where a server ended by itself, 2 where it could not begin."""
    port = _port(argv)
    # Ctrl-C too: a shell that starts something in the background has it ignored from the start.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        with staged(celery=False, body_seconds=0.0):
            os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
            django.setup()
            from testproject.serve.evening import spend

            return spend(port)
    except StageError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _port(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m testproject.serve",
        description="Runs the admin and a worker on a database with some executions, until Ctrl-C.",
    )
    parser.add_argument("--port", type=int, default=8000, help="of the admin; 8000")
    port: int = parser.parse_args(argv).port
    return port


if __name__ == "__main__":
    sys.exit(main())
