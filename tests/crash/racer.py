"""Racer: a thread with a real connection of its own that does what it is told, and tells whether it waits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import connections

from tests.services.waiting import wait_until

__all__ = ["Racer"]

T = TypeVar("T")
LONGEST = 60.0


class Racer:
    """One side of a race. ``begin`` starts a piece of work, ``run`` waits for its result as well."""

    def __init__(self, *aliases: str) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._aliases = aliases or ("default",)
        self._pids = self.run(_backend_pids, self._aliases)

    def begin(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
        """Start a piece of work in this side's thread."""
        return self._pool.submit(work, *args, **kwargs)

    def run(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The result of a piece of work in this side's thread."""
        return self.begin(work, *args, **kwargs).result(LONGEST)

    def waits(self) -> bool:
        """Whether the other side's lock keeps it waiting; asked on the calling thread's connection. PostgreSQL."""
        with connections[self._aliases[0]].cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = ANY(%s)", [self._pids]
            )
            return bool(cursor.fetchone()[0])

    def wait_for_lock(self, work: Future[Any]) -> None:
        """Return once the work is held up by a lock. ``AssertionError`` where it ends without one."""

        def held() -> bool:
            if work.done():
                raise AssertionError(
                    f"it did not wait for a lock; it ended with {work.exception() or work.result()!r}"
                )
            return self.waits()

        wait_until(held, within=LONGEST, because="the other side waits for a lock")

    def close(self) -> None:
        """End the thread and its connection."""
        self.run(connections.close_all)
        self._pool.shutdown()


def _backend_pids(aliases: tuple[str, ...]) -> list[int]:
    """Open the connections; their servers' process ids, on PostgreSQL."""
    pids: list[int] = []
    for alias in aliases:
        connection = connections[alias]
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()" if connection.vendor == "postgresql" else "SELECT 0")
            pids.append(int(cursor.fetchone()[0]))
    return pids
