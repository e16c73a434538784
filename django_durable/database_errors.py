"""What a database error means: a lost race for a lock, a lost connection, a mistake, or else its circumstances."""

from __future__ import annotations

from django.db import DataError, IntegrityError, InterfaceError, NotSupportedError, OperationalError, ProgrammingError

# 40001 serialization_failure, 40P01 deadlock_detected, 55P03 lock_not_available
_RETRYABLE_STATES = frozenset({"40001", "40P01", "55P03"})


def is_contention(error: BaseException) -> bool:
    """Whether the database refused for a lock, a deadlock or a serialisation failure."""
    cause = error.__cause__ or error
    state = getattr(cause, "sqlstate", None)
    if state is not None:
        return state in _RETRYABLE_STATES
    return isinstance(error, OperationalError) and "locked" in str(error)


def is_disconnect(error: BaseException) -> bool:
    """Whether the connection is gone, so that nobody knows what became of the last statement."""
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, OperationalError) or is_contention(error):
        return False
    cause = error.__cause__ or error
    if hasattr(cause, "sqlite_errorname"):
        return str(cause.sqlite_errorname).startswith(("SQLITE_CANTOPEN", "SQLITE_IOERR"))
    state = getattr(cause, "sqlstate", None)
    # Class 08: connection exception; 57P0x: the server shut down or ended the session.
    return state is None or state.startswith("08") or state in {"57P01", "57P02", "57P03"}


# 0A feature_not_supported, 22 data_exception, 23 integrity_constraint_violation, 42 syntax_error_or_access_rule
_MISTAKEN_CLASSES = frozenset({"0A", "22", "23", "42"})
_INSUFFICIENT_PRIVILEGE = "42501"
_MISTAKEN_IN_SQLITE = ("SQLITE_ERROR", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_RANGE", "SQLITE_TOOBIG")


def is_mistake(error: BaseException) -> bool:
    """Whether the statement itself was wrong, for the tables that are there. A missing right is no mistake."""
    cause = error.__cause__ or error
    if hasattr(cause, "sqlite_errorname"):
        return str(cause.sqlite_errorname).startswith(_MISTAKEN_IN_SQLITE)
    state = getattr(cause, "sqlstate", None)
    if state is not None:
        return state[:2] in _MISTAKEN_CLASSES and state != _INSUFFICIENT_PRIVILEGE
    return isinstance(error, (ProgrammingError, DataError, IntegrityError, NotSupportedError))


def first_line(error: BaseException) -> str:
    """What the database said, without the lines that may repeat the statement."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
