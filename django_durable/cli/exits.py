"""Exit: the codes that a verb ends with, and which error means which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from django.core.management.base import CommandError
from django.db import InterfaceError, OperationalError, ProgrammingError

from django_durable.cli.outage import explain_outage
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

__all__ = ["Exit", "reading_arguments", "refusal", "refusing", "usage"]


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


def refusal(message: str, code: Exit) -> CommandError:
    """The error that ends the command with this code and one line on stderr."""
    return CommandError(message, returncode=code)


def usage(message: str) -> CommandError:
    """The error for an option or argument that cannot be used."""
    return refusal(message, Exit.USAGE)


@contextmanager
def reading_arguments() -> Iterator[None]:
    """Turn what an argument cannot be into the usage error.

    Around the reading of arguments only: the same errors from code of the project, which a verb may call, are bugs.
    """
    try:
        yield
    except DurableError:
        raise
    except (TypeError, ValueError) as error:
        raise usage(str(error)) from error


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
