"""Reviewer: somebody who looks at every order and says so, from a thread of its own, by a signal each."""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connections

from django_durable import Execution, PlaneUnavailable

__all__ = ["Reviewer"]

# One of this many reviews comes at once, long before its order waits for one; the others come over this time.
AT_ONCE = 3
SECONDS = 5.0
AGAIN_SECONDS = 0.3
"""How long after its plane could not be reached an order is looked at again."""


class Reviewer(threading.Thread):
    """Sends each execution the signal ``reviewed``: some before it is waited for, some after, in random order."""

    def __init__(self, chance: random.Random, *, seconds: float = SECONDS) -> None:
        super().__init__(name="reviewer", daemon=True)
        self._chance = random.Random(chance.random())
        self._seconds = seconds
        self._numbers = itertools.count()
        self._to_do: list[tuple[float, int, UUID, int]] = []
        self._changed = threading.Condition()
        self._closing = False
        self.error: BaseException | None = None
        """Why it could not go on, if it could not."""

    def expect(self, executions: Sequence[Execution[Any]]) -> None:
        """Take these on too."""
        mixed = self._chance.sample(executions, k=len(executions))
        early = len(mixed) // AT_ONCE
        moments = [0.0] * early + sorted(self._chance.uniform(0, self._seconds) for _ in mixed[early:])
        now = time.monotonic()
        with self._changed:
            for after, execution in zip(moments, mixed, strict=True):
                self._put(now + after, execution.pk, execution.input["order_id"])
            self._changed.notify()

    def run(self) -> None:
        try:
            while (order := self._next()) is not None:
                self._review(*order)
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()

    def close(self) -> None:
        """Stop, if it is not over yet."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self.join()

    def _next(self) -> tuple[UUID, int] | None:
        """The next order whose time has come; ``None`` at the end."""
        with self._changed:
            while not self._closing:
                wait = self._to_do[0][0] - time.monotonic() if self._to_do else None
                if wait is not None and wait <= 0:
                    _at, _number, execution_id, order_id = heapq.heappop(self._to_do)
                    return execution_id, order_id
                self._changed.wait(wait)
        return None

    def _review(self, execution_id: UUID, order_id: int) -> None:
        payload = {"order": order_id, "by": "the demo"}
        try:
            # On whatever plane it lives by now.
            execution = Execution.objects.locate(execution_id)
            execution.signal("reviewed", payload, dedup_key="the one review")
        except PlaneUnavailable:
            with self._changed:
                self._put(time.monotonic() + AGAIN_SECONDS, execution_id, order_id)
        finally:
            connections.close_all()  # nothing of ours may hold a database that is to be taken away

    def _put(self, at: float, execution_id: UUID, order_id: int) -> None:
        heapq.heappush(self._to_do, (at, next(self._numbers), execution_id, order_id))
