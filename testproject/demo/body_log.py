"""BodyLog: which step bodies began and which ended, in a file that no transaction of ours can roll back.

A body that a process was killed in has begun and never ended. That is how the demo finds out where to strike,
and afterwards that it did strike there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from django.db import connections

from django_durable import current_step
from django_durable.models import Checkpoint
from testproject.shop.outside import OutsideSystem

__all__ = ["Body", "BodyLog", "recorded"]

P = ParamSpec("P")
R = TypeVar("R")

SECONDS_VARIABLE = "BODY_SECONDS"
# SQLite has one writer at a time: a transaction that took as long as a call to somebody else's server would
# keep everybody else waiting.
TRANSACTION_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """One run of a step's body. ``outcome`` is ``""`` where the process was gone before its end."""

    number: int
    execution_id: UUID
    position: int
    step: str
    pid: int
    parent_pid: int
    checkpointed: bool
    """Whether the step's result was recorded already when this body began: never, if the engine is right."""
    outcome: str

    @property
    def ended(self) -> bool:
        """Whether the body came to its end, well or badly."""
        return bool(self.outcome)


class BodyLog(OutsideSystem):
    """The record of all bodies. It is the file ``BODY_LOG``."""

    variable = "BODY_LOG"
    schema = """
        CREATE TABLE bodies (
            number INTEGER PRIMARY KEY, execution_id TEXT NOT NULL, position INTEGER NOT NULL, step TEXT NOT NULL,
            pid INTEGER NOT NULL, parent_pid INTEGER NOT NULL, checkpointed INTEGER NOT NULL, began_at REAL NOT NULL,
            ended_at REAL, outcome TEXT NOT NULL DEFAULT '');
        CREATE INDEX open_bodies ON bodies (number) WHERE outcome = '';
    """

    def begin(self, execution_id: UUID, position: int, step: str, *, checkpointed: bool) -> int:
        """Record that a body begins in this process; its number."""
        with self.connected() as file:
            return (
                file.execute(
                    "INSERT INTO bodies (execution_id, position, step, pid, parent_pid, checkpointed, began_at)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (str(execution_id), position, step, os.getpid(), os.getppid(), checkpointed, time.time()),
                ).lastrowid
                or 0
            )

    def end(self, number: int, outcome: str) -> None:
        """Record that a body has ended: ``returned``, or the name of what it raised."""
        with self.connected() as file:
            file.execute(
                "UPDATE bodies SET ended_at = ?, outcome = ? WHERE number = ?", (time.time(), outcome, number)
            )

    def bodies(self) -> list[Body]:
        """Every body so far, in the order in which they began."""
        return [_body(row) for row in self.rows("bodies")]

    def ended_count(self) -> int:
        """How many bodies have come to their end."""
        with self.connected() as file:
            (count,) = file.execute("SELECT count(*) FROM bodies WHERE outcome <> ''").fetchone()
            return int(count)

    def open_bodies(self) -> list[Body]:
        """Bodies that have begun and not ended: running, or cut short for good."""
        with self.connected() as file:
            return [_body(row) for row in file.execute("SELECT * FROM bodies WHERE outcome = '' ORDER BY number")]


def recorded(body: Callable[P, R]) -> Callable[P, R]:
    """Record every run of a step's body, where ``BODY_LOG`` names a file; otherwise the body as it is.

    ``BODY_SECONDS`` is how long a recorded body takes on top of its work: half before it and half after it, so that
    a kill strikes now before the effect and now behind it.
    """

    @wraps(body)
    def recording(*args: P.args, **kwargs: P.kwargs) -> R:
        if not os.environ.get(BodyLog.variable):
            return body(*args, **kwargs)
        attempt = current_step()
        position = int(attempt.idempotency_key.rpartition(":")[2])
        log = BodyLog()
        done = Checkpoint.objects.filter(execution_id=attempt.execution_id, position=position, status="completed")
        number = log.begin(attempt.execution_id, position, body.__name__, checkpointed=done.exists())
        try:
            _take_time(done.db)
            result = body(*args, **kwargs)
            _take_time(done.db)
        except BaseException as error:
            log.end(number, type(error).__name__)
            raise
        log.end(number, "returned")
        return result

    return recording


def _take_time(using: str) -> None:
    share = TRANSACTION_SHARE if connections[using].in_atomic_block else 1.0
    time.sleep(float(os.environ.get(SECONDS_VARIABLE, "0")) / 2 * share)


def _body(row: Any) -> Body:
    return Body(
        number=row["number"],
        execution_id=UUID(row["execution_id"]),
        position=row["position"],
        step=row["step"],
        pid=row["pid"],
        parent_pid=row["parent_pid"],
        checkpointed=bool(row["checkpointed"]),
        outcome=row["outcome"],
    )
