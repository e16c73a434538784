"""What scenarios expect of an output or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.crash.life import Violation
from tests.crash.run import Run

__all__ = ["FIRST_AND_LAST", "THREE", "done", "failed_with"]

THREE = ("-0", "-1", "-2")
FIRST_AND_LAST = ("-0", "-2")


def done(*labels: str) -> Callable[[str], Any]:
    """The results of these steps, in order."""
    return lambda mark: [f"{mark}{label} done" for label in labels]


def failed_with(kind: str) -> Callable[[Run], None]:
    """The run ended with an error of this class."""

    def check(run: Run) -> None:
        error = run.execution().error
        if error is None or not error["type"].endswith(kind):
            raise Violation(f"the error is {error}, not {kind}")

    return check
