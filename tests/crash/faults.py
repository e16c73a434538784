"""Fault: what happens to a process at one numbered boundary.

A boundary is a statement or a commit that a process sends to its database. Statements in autocommit commit
themselves, and a savepoint is created, released and rolled back by statements, so these two are all there are.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper

__all__ = [
    "BETWEEN_DATABASES",
    "RESTARTS",
    "SPINE_LOST",
    "STANDING_STILL",
    "Boundary",
    "Fault",
    "Killed",
    "Mode",
    "lose_connection",
    "refuse_connection",
    "sever",
]


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
    PLANE_DOWN = "from here on the plane cannot be reached for a while"
    SPINE_EMPTIED = "the spine is emptied before it"
    SPINE_RESTORED = "an older copy of the spine is put in its place before it"


STANDING_STILL = (Mode.FROZEN, Mode.FROZEN_FOR_LONG, Mode.HALF_OVERTAKEN)
RESTARTS = (Mode.KILLED_BEFORE, Mode.KILLED_AFTER, *STANDING_STILL)
"""After these another process takes the work over, so that what was not recorded is done again."""
SPINE_LOST = (Mode.SPINE_EMPTIED, Mode.SPINE_RESTORED)
BETWEEN_DATABASES = (Mode.PLANE_DOWN, *SPINE_LOST)
"""These need a plane in another database than the spine."""
REFUSALS = 4
"""How often a plane that is down refuses while its process tries again; with the pauses in between about a second."""


class Killed(BaseException):
    """The process is gone. Nothing in the engine may catch this and go on."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """One statement or commit: its number, whose it is, and what it is.

    ``commits``: it makes something last. ``passable``: others can go on while its process stands before it.
    ``spine_free``: its process has no transaction open on the spine.
    """

    number: int
    role: str
    what: str
    commits: bool = False
    passable: bool = True
    spine_free: bool = True

    def worth(self, mode: Mode) -> bool:
        """Whether this mode leaves something here that no other mode leaves.

        After a statement that commits nothing, death and error leave what they leave before it: the transaction
        is rolled back, and a read has changed nothing.
        """
        if mode in (Mode.KILLED_AFTER, Mode.ERROR_AFTER):
            return self.commits
        if mode is Mode.ERROR_TWICE:  # only a turn goes on by itself after the first error
            return self.commits and self.role == "worker"
        if mode in SPINE_LOST:
            return self.spine_free
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
        self.lose_spine: Callable[[Mode], None] = lambda mode: None
        """What the run does to its spine in place of the process that would lose it."""
        self.down: str | None = None
        """The plane that cannot be reached at present."""
        self._refused = 0
        self._lock = threading.Lock()

    def swept(self) -> list[Boundary]:
        """The boundaries from the one on at which the sweep of this scenario begins."""
        return self.passed[self.begins_at :]

    def refuses(self, alias: str) -> bool:
        """Whether this database cannot be reached; each time that it is tried counts."""
        with self._lock:
            if alias != self.down:
                return False
            self._refused += 1
            if self._refused >= REFUSALS:
                self.down = None  # this was the last time
            return True

    def meet(self, role: str, what: str, *, commits: bool, passable: bool, spine_free: bool) -> Mode | None:
        """Number the next boundary; how it is to be struck, if it is."""
        with self._lock:
            boundary = Boundary(len(self.passed) + 1, role, what, commits, passable, spine_free)
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


def refuse_connection(connection: BaseDatabaseWrapper) -> NoReturn:
    """Raise what the driver raises where there is nobody to connect to; Django's caller wraps it."""
    if connection.vendor == "postgresql":
        raise psycopg.OperationalError("connection refused")
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorname = "SQLITE_CANTOPEN"
    raise error
