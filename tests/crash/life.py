"""Life: one process under test, as a thread with connections of its own, which can be killed or frozen.

Dead means: its open transactions are rolled back, its connections closed, and whatever its code still tries
(in ``finally`` and ``except BaseException`` blocks too) raises ``Killed`` again before it reaches a database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from tests.crash.faults import (
    SPINE_LOST,
    STANDING_STILL,
    Fault,
    Killed,
    Mode,
    lose_connection,
    refuse_connection,
    sever,
)
from tests.crash.places import here

__all__ = ["Life", "Violation", "close_spare_connections"]

LONGEST = 60.0
GUARDED = ("_rollback", "connect", "cursor", "chunked_cursor", "close")


class Violation(AssertionError):
    """Something that must hold did not."""


_this = threading.local()
_spare: list[BaseDatabaseWrapper] = []
_lock = threading.Lock()


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
        self._connections: list[BaseDatabaseWrapper] = []
        self._stands = threading.Event()
        self._thaw = threading.Event()
        self._thread: threading.Thread | None = None

    @staticmethod
    def current() -> Life | None:
        """The process that the calling thread belongs to."""
        return getattr(_this, "life", None)

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
        _this.life = self
        for alias in here.aliases:
            self._connections.append(_connection_of(alias))
            self._interpose(self._connections[-1])
        try:
            self.value = work()
        except BaseException as error:
            self.error = error
        finally:
            for connection in self._connections:
                self._leave(connection)
            self._stands.set()

    def _leave(self, connection: BaseDatabaseWrapper) -> None:
        if self.dead:
            sever(connection)
            connection.connection = None
            return
        connection.execute_wrappers.clear()
        for name in ("_commit", *GUARDED):
            delattr(connection, name)
        if connection.in_atomic_block or getattr(connection.connection, "closed", connection.connection is None):
            connection.close()
        else:
            connection.errors_occurred = False
            # What the engine has noted of a connection, a new process would have to find out again.
            vars(connection).pop("_durable_isolation", None)
            _spare.append(connection)

    # -- between the process and its databases ---------------------------------------------------------------

    def _interpose(self, connection: BaseDatabaseWrapper) -> None:
        where = f"{connection.alias}: " if here.apart else ""
        commit: Callable[[], None] = getattr(connection, "_commit")

        def execute(send: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
            def read_all() -> None:
                # SQLite carries a statement out while it is read: in autocommit it commits with its last row.
                if connection.vendor == "sqlite":
                    context["cursor"].cursor.fetchall()

            what = " ".join(str(sql).split())[:90]
            lasts = not connection.in_atomic_block and not what.startswith(("SELECT", "BEGIN", "SHOW"))
            return self._pass(connection, where + what, lasts, lambda: send(sql, params, many, context), read_all)

        connection.execute_wrappers.append(execute)
        setattr(connection, "_commit", lambda: self._pass(connection, f"{where}COMMIT", True, commit))
        for name in GUARDED:
            setattr(connection, name, self._unless_dead(connection, name))

    def _unless_dead(self, connection: BaseDatabaseWrapper, name: str) -> Callable[..., Any]:
        call: Callable[..., Any] = getattr(connection, name)

        def guarded(*args: Any, **kwargs: Any) -> Any:
            self.check_alive()
            if name == "connect" and self.fault.refuses(connection.alias):
                refuse_connection(connection)
            return call(*args, **kwargs)

        return guarded

    def _pass(
        self,
        connection: BaseDatabaseWrapper,
        what: str,
        commits: bool,
        send: Callable[[], Any],
        finish: Callable[[], None] = lambda: None,
    ) -> Any:
        self.check_alive()
        if self.fault.refuses(connection.alias):
            lose_connection(connection)
        passable = all(_passable(c, what) for c in self._connections)
        spine_free = all(_is_idle(c) for c in self._connections if c.alias == here.spine)
        mode = self.fault.meet(self.role, what, commits=commits, passable=passable, spine_free=spine_free)
        self.struck = self.struck or mode is not None
        if mode is Mode.PLANE_DOWN:
            self.fault.down = connection.alias if connection.alias in here.planes else here.plane
            if self.fault.refuses(connection.alias):
                lose_connection(connection)
        if mode in SPINE_LOST and spine_free:
            self.fault.lose_spine(mode)
        if mode is Mode.ERROR_AFTER and "BEGIN" in what:
            mode = Mode.ERROR_BEFORE  # SQLite never begins a transaction and says that it did not
        if mode is Mode.KILLED_BEFORE:
            self._die()
        if mode is Mode.ERROR_BEFORE:
            lose_connection(connection)
        if mode in STANDING_STILL and passable:
            self._stand_still()
        result = send()
        if mode in (Mode.KILLED_AFTER, Mode.ERROR_AFTER):
            finish()
            if mode is Mode.KILLED_AFTER:
                self._die()
            lose_connection(connection)
        return result

    def _die(self) -> None:
        # Severed here and not later: Django would commit on SQLite on its way out of ``atomic``, by switching
        # autocommit on again.
        self.dead = True
        for connection in self._connections:
            sever(connection)
        raise Killed

    def _stand_still(self) -> None:
        self.frozen = True
        self._stands.set()
        if not self._thaw.wait(LONGEST):
            raise Violation("nobody thawed a frozen process")


def _connection_of(alias: str) -> BaseDatabaseWrapper:
    """A connection for this thread: one that an undisturbed process has left, or a new one."""
    with _lock:
        for spare in _spare:
            if spare.alias == alias:
                _spare.remove(spare)
                connections[alias] = spare
                return spare
    made: BaseDatabaseWrapper = connections[alias]
    made.inc_thread_sharing()
    return made


def _is_idle(connection: BaseDatabaseWrapper) -> bool:
    """Whether no transaction is open on it, which others might have to wait for."""
    raw: Any = connection.connection
    if raw is None:
        return True
    if connection.vendor == "sqlite":
        return not raw.in_transaction
    return raw.closed or raw.info.transaction_status == TransactionStatus.IDLE


def _passable(connection: BaseDatabaseWrapper, what: str) -> bool:
    """Whether others can go on while its process stands here, and meet what they would not a statement earlier.

    In SQLite a transaction holds the only write lock, once it has begun. In PostgreSQL others see the same before
    each of its statements as before its commit: the locks, and nothing else.
    """
    return _is_idle(connection) or (connection.vendor == "postgresql" and what.endswith("COMMIT"))
