"""live_worker: an embedded worker in a thread of the test's process, for what needs real commits."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connections

from django_durable.conf import config
from django_durable.runtime.worker import Worker
from django_durable.testing.places import usable_databases

GRACE_SECONDS = 10.0
"""How much longer than WORKER_SHUTDOWN_SECONDS the end of the worker is waited for."""


@contextmanager
def live_worker(*, concurrency: int | None = None, queues: Sequence[str] = ()) -> Iterator[Worker]:
    """Run a worker beside the block; stopped, with its threads and connections, at the end.

    What the test writes must be committed to be seen: ``TransactionTestCase``, ``django_db(transaction=True)``.
    Raises ``RuntimeError`` inside a transaction or on a database that lives in memory, ``AssertionError`` where a
    body does not come back at the end.
    """
    _refuse_unshared_databases()
    worker = Worker(concurrency=concurrency, queues=queues)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            worker.run()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=work, name="durable-worker", daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.request_stop()
        thread.join(config().worker_shutdown_seconds + GRACE_SECONDS)
    if errors:
        raise errors[0]
    if thread.is_alive() or worker.stuck:
        raise AssertionError("a step's body is still running in the live worker; its thread cannot be stopped")


def _refuse_unshared_databases() -> None:
    for using in usable_databases():
        _refuse_unshared(using)


def _refuse_unshared(using: str) -> None:
    connection = connections[using]
    if connection.in_atomic_block:
        raise RuntimeError(
            "a live worker cannot see what this test's transaction holds; use TransactionTestCase or"
            " @pytest.mark.django_db(transaction=True), or run_until_idle() instead of a worker"
        )
    creation: Any = connection.creation
    if connection.vendor == "sqlite" and creation.is_in_memory_db(connection.settings_dict["NAME"]):
        raise RuntimeError(
            f"a live worker's threads cannot share the SQLite database {using!r}, which lives in memory; give it a"
            f" file for tests: DATABASES[{using!r}]['TEST'] = {{'NAME': 'test.sqlite3'}}"
        )
