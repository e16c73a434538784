"""An embedded worker in the test's own process, and threads that stand at a lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection, connections

import tests.field.bench.workflows  # noqa: F401  (this process starts what the workers run)
from django_durable.runtime.worker import Worker
from tests.processes.shop import Shop
from tests.services.project import Project
from tests.services.waiting import wait_until


@contextmanager
def embedded_worker(**options: Any) -> Iterator[Worker]:
    """A worker that runs for the length of the block, in threads of this process."""
    worker = Worker(**options)
    thread = threading.Thread(target=worker.run, name="worker under test")
    thread.start()
    try:
        yield worker
    finally:
        worker.request_stop()
        thread.join(30)
        assert not thread.is_alive(), "the worker did not end"


class Aside(threading.Thread):
    """Code beside the test, on a connection of its own; ``finish()`` raises what it raised."""

    def __init__(self, act: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._act = act
        self.result: Any = None
        self.error: BaseException | None = None
        self.backend: int | None = None
        self.begun = threading.Event()

    def run(self) -> None:
        try:
            self.backend = backend_of_this_thread()
            self.begun.set()
            self.result = self._act()
        except BaseException as error:
            self.error = error
        finally:
            self.begun.set()
            connections.close_all()

    def finish(self, within: float = 30.0) -> Any:
        """Its result, once it is over."""
        self.join(within)
        assert not self.is_alive(), "it did not end"
        if self.error is not None:
            raise self.error
        return self.result

    def wait_until_it_stands(self) -> None:
        """Return once it waits for a lock of another transaction, or is over.

        SQLite tells nobody who waits; there it is enough that it has begun.
        """
        assert self.begun.wait(30)
        wait_until(lambda: not self.is_alive() or stands_at_a_lock(self.backend), within=30)


def backend_of_this_thread() -> int | None:
    """The server process of this thread's connection."""
    connection.ensure_connection()
    if connection.vendor != "postgresql":
        return None
    return int(connection.connection.info.backend_pid)


def stands_at_a_lock(backend: int | None) -> bool:
    """Whether this server process waits for a lock; always, where nobody can tell."""
    if backend is None:
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted", [backend])
        return bool(cursor.fetchone()[0])


def bench_of(project: Project, folder: Path) -> Shop:
    """The test project on a fresh database, its workers with this folder's workflows."""
    project.own_env.update(DJANGO_SETTINGS_MODULE="tests.field.bench.settings", EFFECTS=str(folder))
    return Shop(project, folder)
