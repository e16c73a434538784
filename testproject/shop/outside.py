"""A system that is not ours: its records are a file of its own, which no rollback of our database undoes.

Every statement commits by itself, as an HTTP request to somebody else's server would. Any number of processes
may use the same file, and a process may be killed at any point.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

__all__ = ["OutsideSystem"]


class OutsideSystem:
    """Base of the payment provider and the mailbox: where the file is, and how it is opened."""

    variable: ClassVar[str]
    """The environment variable that names the file."""
    schema: ClassVar[str]
    """``CREATE TABLE`` statements."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path or os.environ.get(self.variable) or self.default_path())

    @classmethod
    def default_path(cls) -> Path:
        """A file below the temp folder, one a user: another user's file could not be written."""
        return Path(tempfile.gettempdir()) / f"django-durable-{os.getuid()}-{cls.__name__.lower()}.sqlite3"

    def forget(self) -> None:
        """Delete every record, for a fresh demo. Nobody may be using the file."""
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """A connection in autocommit; a writer waits up to 20 seconds for another one."""
        if not self.path.exists():
            self._create()
        with closing(sqlite3.connect(self.path, timeout=20, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            yield connection

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Everything in one table, oldest first."""
        with self.connected() as connection:
            return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY rowid")]

    def _create(self) -> None:
        # Made beside its place and linked there at once, by the first process that gets so far. Were each to switch
        # the file to WAL itself, some would fail with "database is locked": that lock is not waited for.
        with tempfile.TemporaryDirectory(dir=self.path.parent) as folder:
            made = Path(folder) / self.path.name
            with closing(sqlite3.connect(made)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.executescript(self.schema)
            with suppress(FileExistsError):
                os.link(made, self.path)
