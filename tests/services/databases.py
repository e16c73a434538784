"""Fresh migrated databases of the backend that this run tests: ``TEST_DB=sqlite`` or ``TEST_DB=postgres``.

The migrations run once a session, into a template; every fresh database is a copy of it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import connect
from urllib.parse import quote
from uuid import uuid4

from testproject.services.postgres import PostgresServer
from tests.services.backend import database_alias, database_variables

__all__ = ["DatabaseSource", "FreshDatabase", "PostgresSource", "SqliteSource"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshDatabase:
    """A migrated, otherwise empty database of one test; ``drop()`` deletes it, whoever is connected."""

    url: str
    drop: Callable[[], None]


class DatabaseSource:
    """Makes fresh databases of one backend."""

    backend: str

    def fresh(self) -> FreshDatabase:
        """One more database."""
        raise NotImplementedError

    @staticmethod
    def migrate(url: str) -> None:
        """Run the migrations as a deployment would, in a process of its own."""
        variables = database_variables(url, Path(os.devnull))
        env = {**os.environ, **variables, "DJANGO_SETTINGS_MODULE": "testproject.settings"}
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0", "--database", database_alias()],
            env={**env, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH", "")]))},
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise AssertionError(f"migrate ended with {done.returncode}:\n{done.stdout}{done.stderr}")


class SqliteSource(DatabaseSource):
    """Copies of one file."""

    backend = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder, self._counter = folder, itertools.count(1)
        self._template: Path | None = None

    def fresh(self) -> FreshDatabase:
        if self._template is None:
            template = self._folder / "template.sqlite3"
            self.migrate(self._url(template))
            # Empties the write-ahead log into the file, which then is all there is to copy.
            with closing(connect(template)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._template = template
        path = self._folder / f"fresh-{next(self._counter)}.sqlite3"
        shutil.copyfile(self._template, path)
        return FreshDatabase(url=self._url(path), drop=lambda: self._drop(path))

    @staticmethod
    def _url(path: Path) -> str:
        return f"sqlite://{quote(str(path))}"

    @staticmethod
    def _drop(path: Path) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)


class PostgresSource(DatabaseSource):
    """Copies of one database of a server. Sources share servers, also within a process: names are of one source."""

    backend = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        self._server, self._counter = server, itertools.count(1)
        self._own, self._template = uuid4().hex, ""

    def fresh(self) -> FreshDatabase:
        if not self._template:
            template = f"template_{self._own}"
            self.migrate(self._server.create_database(template))
            self._template = template
        name = f"fresh_{self._own}_{next(self._counter)}"
        url = self._server.create_database(name, template=self._template)
        return FreshDatabase(url=url, drop=lambda: self._server.drop_database(name))

    def remove(self) -> None:
        """Drop the template: the server may be somebody's own."""
        if self._template:
            self._server.drop_database(self._template)
