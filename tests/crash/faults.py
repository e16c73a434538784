"""Fault: what happens to a process at one numbered boundary.

A boundary is a statement or a commit that a process sends to its database. Statements in autocommit commit
themselves, and a savepoint is created, released and rolled back by statements, so these two are all there are.
"""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper

__all__ = ["RESTARTS", "STANDING_STILL", "Boundary", "Fault", "Killed", "Mode", "lose_connection", "sever"]


class Mode(Enum):
    """What happens at the boundary. ``FROZEN``: the process stands still before it while others go on."""

    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    ERROR_BEFORE = "connection lost before"
    ERROR_AFTER = "carried out, but the client got an error"
    ERROR_TWICE = "carried out with an error, and so is the one after the next"
    FROZEN = "frozen before, overtaken, thawed"
    FROZEN_FOR_LONG = "frozen before until its own clock ended its lease, overtaken, thawed"
    HALF_OVERTAKEN = "frozen before, taken over, thawed when the new owner had read the journal"


STANDING_STILL = (Mode.FROZEN, Mode.FROZEN_FOR_LONG, Mode.HALF_OVERTAKEN)
RESTARTS = (Mode.KILLED_BEFORE, Mode.KILLED_AFTER, *STANDING_STILL)
"""After these another process takes the work over, so that what was not recorded is done again."""


class Killed(BaseException):
    """The process is gone. Nothing in the engine may catch this and go on."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """One statement or commit: its number, whose it is, and what it is.

    ``commits``: it makes something last. ``passable``: others can go on while its process stands before it.
    """

    number: int
    role: str
    what: str
    commits: bool = False
    passable: bool = True

    def worth(self, mode: Mode) -> bool:
        """Whether this mode leaves something here that no other mode leaves.

        After a statement that commits nothing, death and error leave what they leave before it: the transaction
        is rolled back, and a read has changed nothing.
        """
        if mode in (Mode.KILLED_AFTER, Mode.ERROR_AFTER):
            return self.commits
        if mode is Mode.ERROR_TWICE:  # only a turn goes on by itself after the first error
            return self.commits and self.role == "worker"
        if mode is Mode.FROZEN:
            return self.passable
        return self.passable and self.role == "worker" if mode in STANDING_STILL else True

    def __str__(self) -> str:
        return f"boundary {self.number} ({self.role}: {self.what})"


class Fault:
    """Counts the boundaries of all processes of one run, and strikes at one of them. ``at=0``: counts only."""

    def __init__(self, mode: Mode | None = None, at: int = 0) -> None:
        self.mode = mode
        self.at = at
        self.passed: list[Boundary] = []
        self.begins_at = 0
        self.struck: Boundary | None = None
        self._lock = threading.Lock()

    def swept(self) -> list[Boundary]:
        """The boundaries from the one on at which the sweep of this scenario begins."""
        return self.passed[self.begins_at :]

    def meet(self, role: str, what: str, *, commits: bool, passable: bool) -> Mode | None:
        """Number the next boundary; how it is to be struck, if it is."""
        with self._lock:
            boundary = Boundary(len(self.passed) + 1, role, what, commits, passable)
            self.passed.append(boundary)
            if self.mode is None or self.at == 0:
                return None
            if boundary.number == self.at:
                self.struck = boundary
                return Mode.ERROR_AFTER if self.mode is Mode.ERROR_TWICE else self.mode
            if self.mode is Mode.ERROR_TWICE and boundary.number == self.at + 2:
                return Mode.ERROR_AFTER
            return None

    def __str__(self) -> str:
        return f"{self.mode.value if self.mode else 'no fault'}, {self.struck or f'boundary {self.at}'}"


def sever(connection: BaseDatabaseWrapper) -> None:
    """Close the raw connection as the end of its process does: what is open is rolled back, before this returns."""
    raw = connection.connection
    if raw is None:
        return
    try:
        raw.rollback()
    except (psycopg.Error, sqlite3.Error):
        pass
    raw.close()


def lose_connection(connection: BaseDatabaseWrapper) -> NoReturn:
    """Raise what the driver raises when the server or the disk goes away, as Django passes it on.

    On PostgreSQL the connection is really closed, so that it looks broken from then on.
    """
    error: Exception
    if connection.vendor == "postgresql":
        sever(connection)
        error = psycopg.OperationalError("server closed the connection unexpectedly")
    else:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
    with connection.wrap_database_errors:
        raise error
    raise AssertionError("unreachable")
