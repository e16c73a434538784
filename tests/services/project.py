"""The test project with a fresh database: its processes, and this process on the same database."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.utils import load_backend

from testproject.databases import from_url
from tests.services.backend import database_alias, database_variables
from tests.services.databases import ROOT, FreshDatabase
from tests.services.process import Finished, Process
from tests.services.waiting import wait_until

__all__ = ["Project"]

T = TypeVar("T")

# A worker under test gets neither our broker nor our server, and no settings but the test project's.
NOT_INHERITED = (
    "BROKER_URL",
    "DATABASE_URL",
    "SQLITE_PATH",
    "PLANE_DATABASES",
    "SPINE_DATABASE",
    "LOG_LEVEL",
    "DEBUG",
    "PYTHONWARNINGS",
)


class Project:
    """``manage()`` starts a worker or any command; ``wait_for()`` waits on what the database shows here."""

    def __init__(self, database: FreshDatabase, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.processes: list[Process] = []
        self.own_env = {
            **database_variables(database.url, folder / "without-our-tables.sqlite3"),
            "PROVIDER_LEDGER": str(folder / "ledger.sqlite3"),
            "MAILBOX": str(folder / "mailbox.sqlite3"),
        }

    @property
    def env(self) -> dict[str, str]:
        """The environment of the project's processes; ``own_env`` is what a test may add to."""
        inherited = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
        paths = [str(ROOT), inherited.get("PYTHONPATH", "")]
        return {
            **inherited,
            "DJANGO_SETTINGS_MODULE": "testproject.settings",
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            **self.own_env,
        }

    def add_plane(self, alias: str, database: FreshDatabase) -> None:
        """Give processes started from now on one more database, a data plane of that name."""
        planes = json.loads(self.own_env.get("PLANE_DATABASES", "{}"))
        self.own_env["PLANE_DATABASES"] = json.dumps({**planes, alias: database.url})

    def spawn(self, argv: Sequence[str], *, name: str = "process", stdin: str = "", **variables: str) -> Process:
        """Start any process in the project's environment, with these variables added."""
        process = Process(
            argv,
            env={**self.env, **variables},
            cwd=ROOT,
            folder=self.folder,
            name=f"{len(self.processes) + 1}-{name}",
            stdin=stdin,
        )
        self.processes.append(process)
        return process

    def manage(self, *arguments: str, stdin: str = "", **variables: str) -> Process:
        """Start ``manage.py`` with these arguments and leave it running: ``manage("durable", "worker")``."""
        argv = [sys.executable, str(ROOT / "manage.py"), *arguments]
        return self.spawn(argv, name="-".join(arguments[:2]).replace("/", "_"), stdin=stdin, **variables)

    def python(self, code: str, **variables: str) -> Process:
        """Start Python with this code after ``django.setup()`` and leave it running."""
        text = f"import django\ndjango.setup()\n{textwrap.dedent(code)}"
        return self.spawn([sys.executable, "-c", text], name="python", **variables)

    def run_manage(
        self, *arguments: str, expect: int | None = 0, within: float = 60.0, stdin: str = "", **variables: str
    ) -> Finished:
        """Run ``manage.py`` to its end; ``AssertionError`` with its output where the exit code is another."""
        return self._finish(self.manage(*arguments, stdin=stdin, **variables), expect, within)

    def run_python(self, code: str, *, expect: int | None = 0, within: float = 60.0, **variables: str) -> Finished:
        """Run Python with this code after ``django.setup()`` to its end."""
        return self._finish(self.python(code, **variables), expect, within)

    def wait_for(self, condition: Callable[[], T], *, within: float = 60.0, because: str = "") -> T:
        """``wait_until``: the condition may query the project's database."""
        return wait_until(condition, within=within, because=because)

    def end(self) -> None:
        """Kill what still runs, and what it started."""
        for process in self.processes:
            process.kill_group()

    @contextmanager
    def as_default(self) -> Iterator[None]:
        """Make the project's database this process's own: queries and ``start()`` go there.

        The connection and its settings are replaced and not changed: what other tests use stays as it was.
        """
        alias = database_alias()
        entry = connections.configure_settings({DEFAULT_DB_ALIAS: from_url(self.database.url)})[DEFAULT_DB_ALIAS]
        old_entry, old_connection = connections.settings[alias], connections[alias]
        connections.settings[alias] = entry
        connections[alias] = load_backend(entry["ENGINE"]).DatabaseWrapper(entry, alias)
        try:
            yield
        finally:
            connections[alias].close()
            connections.settings[alias] = old_entry
            connections[alias] = old_connection

    @staticmethod
    def _finish(process: Process, expect: int | None, within: float) -> Finished:
        finished = process.finish(within)
        if expect is not None and finished.code != expect:
            raise AssertionError(
                f"{process.name} ended with {finished.code}, not {expect}; stdout:\n{finished.stdout}\n"
                f"stderr:\n{finished.stderr}"
            )
        return finished
