"""Life: one process under test, as a thread with connections of its own, which can be killed or frozen.

Dead means: its open transaction is rolled back, its connection closed, and whatever its code still tries
(in ``finally`` and ``except BaseException`` blocks too) raises ``Killed`` again before it reaches the database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.crash.faults import STANDING_STILL, Fault, Killed, Mode, lose_connection, sever

__all__ = ["Life", "Violation"]

USING = "default"
LONGEST = 60.0


class Violation(AssertionError):
    """Something that must hold did not."""


_here = threading.local()
_spare: list[BaseDatabaseWrapper] = []


def close_spare_connections() -> None:
    """Close what undisturbed processes have left for the next ones."""
    while _spare:
        _spare.pop().close()


class Life:
    """A process: ``begin`` runs a function as its only thread; ``wait`` until it has ended or is frozen."""

    def __init__(self, fault: Fault, role: str) -> None:
        self.fault = fault
        self.role = role
        self.dead = False
        self.struck = False
        self.frozen = False
        self.outlived = False
        self.thawed = False
        self.value: Any = None
        self.error: BaseException | None = None
        self._stands = threading.Event()
        self._thaw = threading.Event()
        self._thread: threading.Thread | None = None

    @staticmethod
    def current() -> Life | None:
        """The process that the calling thread belongs to."""
        return getattr(_here, "life", None)

    def begin(self, work: Callable[[], Any]) -> None:
        """Start the process."""
        self._thread = threading.Thread(target=self._live, args=(work,), name=f"life-{self.role}", daemon=True)
        self._thread.start()

    def wait(self) -> bool:
        """Wait until it stands frozen (``True``) or has ended (``False``)."""
        if not self._stands.wait(LONGEST):
            raise Violation(f"the {self.role} hangs: {self.fault}")
        return self.frozen and not self.thawed

    def thaw(self) -> None:
        """Let a frozen process go on, and wait for its end."""
        self.thawed = True
        self._stands.clear()
        self._thaw.set()
        self.wait()

    def join(self) -> None:
        """Wait for the end of its thread."""
        if self._thread is not None:
            self._thread.join(LONGEST)

    def check_alive(self) -> None:
        """What a body calls before its effect: the dead have none."""
        if self.dead:
            raise Killed

    def _live(self, work: Callable[[], Any]) -> None:
        _here.life = self
        connection = self._connect()
        try:
            self.value = work()
        except BaseException as error:
            self.error = error
        finally:
            if self.dead:
                sever(connection)
                connection.connection = None
            else:
                self._disconnect(connection)
            self._stands.set()

    def _connect(self) -> BaseDatabaseWrapper:
        """The connection of this thread: one that an undisturbed process has left, or a new one."""
        try:
            connections[USING] = _spare.pop()
        except IndexError:
            connections[USING].inc_thread_sharing()
        connection = connections[USING]
        self._interpose(connection)
        return connection

    def _disconnect(self, connection: BaseDatabaseWrapper) -> None:
        connection.execute_wrappers.clear()
        for name in ("_commit", "_rollback", "connect", "cursor", "chunked_cursor", "close"):
            delattr(connection, name)
        if self.struck or connection.in_atomic_block:
            connection.close()
        else:
            _spare.append(connection)

    # -- between the process and its database ----------------------------------------------------------------

    def _interpose(self, connection: BaseDatabaseWrapper) -> None:
        commit, connect, cursor = connection._commit, connection.connect, connection.cursor
        chunked, rollback, close = connection.chunked_cursor, connection._rollback, connection.close

        def execute(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
            def send() -> Any:
                return execute(sql, params, many, context)

            def read_all() -> None:
                # SQLite carries a statement out while it is read: in autocommit it commits with its last row.
                if connection.vendor == "sqlite":
                    context["cursor"].cursor.fetchall()

            return self._pass(connection, " ".join(str(sql).split())[:90], send, read_all)

        def unless_dead(call: Callable[..., Any]) -> Callable[..., Any]:
            def guarded(*args: Any, **kwargs: Any) -> Any:
                self.check_alive()
                return call(*args, **kwargs)

            return guarded

        connection.execute_wrappers.append(execute)
        connection._commit = lambda: self._pass(connection, "COMMIT", commit)
        connection._rollback = unless_dead(rollback)
        connection.connect = unless_dead(connect)
        connection.cursor = unless_dead(cursor)
        connection.chunked_cursor = unless_dead(chunked)
        connection.close = unless_dead(close)

    def _pass(
        self,
        connection: BaseDatabaseWrapper,
        what: str,
        send: Callable[[], Any],
        finish: Callable[[], None] = lambda: None,
    ) -> Any:
        self.check_alive()
        mode = self.fault.meet(
            self.role,
            what,
            commits=what == "COMMIT" or not connection.in_atomic_block and not what.startswith(("SELECT", "BEGIN")),
            # In SQLite a transaction holds the only write lock, once it has begun.
            passable=connection.vendor != "sqlite" or not _in_transaction(connection),
        )
        self.struck = self.struck or mode is not None
        if mode is Mode.ERROR_AFTER and what.startswith("BEGIN"):
            mode = Mode.ERROR_BEFORE  # SQLite never begins a transaction and says that it did not
        if mode is Mode.KILLED_BEFORE:
            self._die(connection)
        if mode is Mode.ERROR_BEFORE:
            lose_connection(connection)
        if mode in STANDING_STILL:
            self._stand_still()
        result = send()
        if mode is Mode.KILLED_AFTER:
            finish()
            self._die(connection)
        if mode is Mode.ERROR_AFTER:
            finish()
            lose_connection(connection)
        return result

    def _die(self, connection: BaseDatabaseWrapper) -> None:
        # Severed here and not later: Django would commit on SQLite on its way out of ``atomic``, by switching
        # autocommit on again.
        self.dead = True
        sever(connection)
        raise Killed

    def _stand_still(self) -> None:
        self.frozen = True
        self._stands.set()
        if not self._thaw.wait(LONGEST):
            raise Violation("nobody thawed a frozen process")


def _in_transaction(connection: BaseDatabaseWrapper) -> bool:
    return bool(connection.connection is not None and connection.connection.in_transaction)
