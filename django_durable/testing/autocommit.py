"""Pretended autocommit: a turn inside the test's transaction goes the way that it goes in production.

A worker's connection is in autocommit: a statement commits by itself, ``atomic()`` is a transaction, an error
ends only that. Inside ``TestCase`` none of it would be true: one failed query would break the test's transaction
and the engine's next write with it, ``on_commit`` would never fire, ``select_for_update`` would work where
production refuses it. So while a turn runs, the connection believes that no transaction is open, and what it
sends as BEGIN, COMMIT and ROLLBACK become a savepoint, its release and the way back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from django.db import InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

# What the connection believes while a turn runs; what it believed before comes back afterwards.
_BELIEFS: dict[str, Callable[[], Any]] = {
    "autocommit": lambda: True,
    "in_atomic_block": bool,
    "atomic_blocks": list,
    "savepoint_ids": list,
    "run_on_commit": list,
    "run_commit_hooks_on_set_autocommit_on": bool,
    "commit_on_exit": lambda: True,
    "needs_rollback": bool,
}
_TRANSACTION, _STATEMENT = "durable_kit_transaction", "durable_kit_statement"


@contextmanager
def pretended_autocommit() -> Iterator[None]:
    """Run a block as in autocommit on every connection that has a transaction open.

    Raises ``TransactionManagementError`` where the test's transaction is broken already.
    """
    with ExitStack() as stack:
        for connection in connections.all(initialized_only=True):
            if connection.in_atomic_block:
                stack.enter_context(_Pretence(connection))
        yield


class _Pretence:
    """One connection's transaction, hidden for the length of a block."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._wrappers = connection.execute_wrappers
        self._open = False
        self._kept: dict[str, Any] = {}
        self._replaced: dict[str, Callable[..., Any]] = {
            "_set_autocommit": self._set_autocommit,
            "_commit": self._commit,
            "_rollback": self._rollback,
            "close": self._close,
        }
        if hasattr(connection, "_start_transaction_under_autocommit"):
            self._replaced["_start_transaction_under_autocommit"] = self._begin

    def __enter__(self) -> None:
        connection = self._connection
        connection.validate_no_broken_transaction()
        self._kept = {name: getattr(connection, name) for name in _BELIEFS}
        for name, make in _BELIEFS.items():
            setattr(connection, name, make())
        for name, method in self._replaced.items():
            setattr(connection, name, method)
        if connection.vendor == "postgresql":
            # First in the list is outermost. Only PostgreSQL ends a transaction with a failed statement.
            self._wrappers.insert(0, self._execute)

    def __exit__(self, *_exc: object) -> None:
        connection = self._connection
        if self._execute in self._wrappers:
            self._wrappers.remove(self._execute)
        for name in self._replaced:
            delattr(connection, name)
        try:
            self._rollback()
        finally:
            for name, kept in self._kept.items():
                setattr(connection, name, kept)

    # -- what Django calls ---------------------------------------------------------------------------------------

    def _set_autocommit(self, autocommit: bool) -> None:
        if not autocommit:
            self._begin()

    def _begin(self) -> None:
        self._send(f"SAVEPOINT {_TRANSACTION}")
        self._open = True

    def _commit(self) -> None:
        if self._open:
            self._send(f"RELEASE SAVEPOINT {_TRANSACTION}")
            self._open = False

    def _rollback(self) -> None:
        if self._open:
            self._send(f"ROLLBACK TO SAVEPOINT {_TRANSACTION}")
            self._commit()

    def _close(self) -> None:
        """A body closes its connection: what it left open is gone, the test's own transaction must stay."""
        connection = self._connection
        if not connection.is_usable():
            raise InterfaceError(f"the connection {connection.alias!r} is gone, and the test's transaction with it")
        connection.run_on_commit = []
        if connection.in_atomic_block:
            connection.needs_rollback = True
        else:
            self._rollback()
            connection.autocommit = True

    def _execute(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        """One statement in autocommit: its error undoes it and nothing else."""
        if self._connection.in_atomic_block:
            return execute(sql, params, many, context)
        self._send(f"SAVEPOINT {_STATEMENT}")
        try:
            result = execute(sql, params, many, context)
        except BaseException:
            self._send(f"ROLLBACK TO SAVEPOINT {_STATEMENT}")
            self._send(f"RELEASE SAVEPOINT {_STATEMENT}")
            raise
        self._send(f"RELEASE SAVEPOINT {_STATEMENT}")
        return result

    def _send(self, sql: str) -> None:
        """Past Django's cursors: neither counted by ``assertNumQueries`` nor seen by anybody's wrapper."""
        with self._connection.wrap_database_errors, closing(self._connection.connection.cursor()) as cursor:
            cursor.execute(sql)
