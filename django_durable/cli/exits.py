"""Exit: the codes that a verb ends with, and which error means which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from django.core.management.base import CommandError
from django.db import DatabaseError, InterfaceError, OperationalError, ProgrammingError

from django_durable.cli.schema import missing_tables
from django_durable.errors import (
    DurableError,
    ExecutionNotFound,
    PayloadTooLarge,
    PlaneUnavailable,
    ScheduleNotFound,
    UnknownTenant,
    UnknownWorkflow,
    UnserializableValue,
)
from django_durable.planes.selection import spine_alias

__all__ = ["Exit", "refusal", "refusing", "usage"]


class Exit(IntEnum):
    """What the caller's shell sees."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNAVAILABLE = 4
    FINDINGS = 5


CODES: tuple[tuple[tuple[type[DurableError], ...], Exit], ...] = (
    ((ExecutionNotFound, ScheduleNotFound, UnknownWorkflow, UnknownTenant), Exit.NOT_FOUND),
    ((PlaneUnavailable,), Exit.UNAVAILABLE),
    ((UnserializableValue, PayloadTooLarge), Exit.USAGE),
    ((DurableError,), Exit.REFUSED),
)

NAMED = 3
"""How many missing tables a message names."""


def refusal(message: str, code: Exit) -> CommandError:
    """The error that ends the command with this code and one line on stderr."""
    return CommandError(message, returncode=code)


def usage(message: str) -> CommandError:
    """The error for an option or argument that cannot be used."""
    return refusal(message, Exit.USAGE)


@contextmanager
def refusing() -> Iterator[None]:
    """Turn what the engine and the database refuse into the ``CommandError`` with the right code.

    Anything else is a bug and passes with its traceback.
    """
    try:
        yield
    except DurableError as error:
        code = next(code for classes, code in CODES if isinstance(error, classes))
        raise refusal(str(error), code) from error
    except (OperationalError, InterfaceError, ProgrammingError) as error:
        explained = explain_outage(error)
        if explained is None:
            raise
        raise refusal(explained, Exit.UNAVAILABLE) from error


def explain_outage(error: DatabaseError | InterfaceError) -> str | None:
    """What to tell of an error of the database; ``None`` where the statement itself was wrong."""
    using = spine_alias()
    if isinstance(error, (OperationalError, ProgrammingError)):
        try:
            missing = missing_tables(using)
        except (DatabaseError, InterfaceError):
            missing = []  # the database is away, or the caller's transaction is broken
        if missing:
            return lacking(using, missing)
    if isinstance(error, ProgrammingError) or getattr(error.__cause__, "sqlite_errorname", "") == "SQLITE_ERROR":
        return None
    first_line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return f"database {using!r} is unavailable: {first_line}"


def lacking(using: str, missing: list[str]) -> str:
    """What to tell where the migrations have not run."""
    named = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
    return f"database {using!r} lacks {named}; run: manage.py migrate"
