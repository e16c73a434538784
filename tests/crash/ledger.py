"""Ledger: the effects of step bodies, in an SQLite file of its own that no rollback of ours undoes.

Any number of processes may write to it. A call is one start of a body; an effect is what the outside world
would have done for its idempotency key.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from django_durable import current_step

__all__ = ["Call", "Ledger"]

VARIABLE = "CRASH_LEDGER"
SCHEMA = """
    CREATE TABLE IF NOT EXISTS calls (
        number INTEGER PRIMARY KEY, label TEXT NOT NULL, execution TEXT NOT NULL, key TEXT NOT NULL,
        attempt INTEGER NOT NULL, process TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS effects (key TEXT PRIMARY KEY, label TEXT NOT NULL, execution TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One start of a body."""

    number: int
    label: str
    execution: str
    key: str
    attempt: int
    process: str

    @property
    def place(self) -> str:
        """The position of its step; of an undo step, ``undo.`` and that of its registration."""
        return self.key.rpartition(":")[2]


class Ledger:
    """The file named by the environment variable ``CRASH_LEDGER``, or by the argument."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path or os.environ[VARIABLE])

    def create(self) -> None:
        """Make an empty one."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(SCHEMA)

    def clear(self) -> None:
        """Forget everything."""
        with self._connected() as connection:
            connection.executescript("DELETE FROM calls; DELETE FROM effects")

    def write(self, label: str, process: str) -> None:
        """Record that a body starts and that the outside world has heard of its idempotency key."""
        step = current_step()
        execution, key = str(step.execution_id), step.idempotency_key
        with self._connected() as connection:
            connection.execute(
                "INSERT INTO calls (label, execution, key, attempt, process) VALUES (?, ?, ?, ?, ?)",
                (label, execution, key, step.attempt, process),
            )
            connection.execute("INSERT OR IGNORE INTO effects VALUES (?, ?, ?)", (key, label, execution))

    def calls(self) -> list[Call]:
        """Every call, in order."""
        with self._connected() as connection:
            rows = connection.execute(
                "SELECT number, label, execution, key, attempt, process FROM calls ORDER BY number"
            )
            return [Call(*row) for row in rows]

    def effects(self) -> list[tuple[str, str, str]]:
        """Every effect: idempotency key, label, execution."""
        with self._connected() as connection:
            return connection.execute("SELECT key, label, execution FROM effects ORDER BY rowid").fetchall()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=20, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=OFF")
            yield connection
