"""Reviewer: somebody who looks at every order and says so, from a thread of its own, by a signal each."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from typing import Any

from django.db import connections

from django_durable import Execution

__all__ = ["Reviewer"]

# One of this many reviews comes at once, long before its order waits for one; the others come over this time.
AT_ONCE = 3
SECONDS = 5.0


class Reviewer(threading.Thread):
    """Sends each execution the signal ``reviewed``: some before it is waited for, some after, in random order."""

    def __init__(self, executions: Sequence[Execution[Any]], chance: random.Random) -> None:
        super().__init__(name="reviewer", daemon=True)
        self._executions = chance.sample(executions, k=len(executions))
        self._chance = random.Random(chance.random())
        self._closing = threading.Event()
        self.error: BaseException | None = None
        """Why it could not go on, if it could not."""

    def run(self) -> None:
        try:
            self._review()
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()

    def close(self) -> None:
        """Stop, if it is not over yet."""
        self._closing.set()
        self.join()

    def _review(self) -> None:
        early = len(self._executions) // AT_ONCE
        for number, execution in enumerate(self._executions):
            if number >= early:
                mean = SECONDS / max(1, len(self._executions) - early)
                self._closing.wait(self._chance.uniform(0, 2 * mean))
            if self._closing.is_set():
                return
            order_id = execution.input["order_id"]
            execution.signal("reviewed", {"order": order_id, "by": "the demo"}, dedup_key="the one review")
