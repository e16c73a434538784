"""What a driver's error means decides who has to do something: wait, repeat, or mend the statement."""

from __future__ import annotations

import pytest
from django.db import DataError, InterfaceError, OperationalError, ProgrammingError

from django_durable.database_errors import is_contention, is_disconnect, is_mistake

KINDS = {"contention": is_contention, "disconnect": is_disconnect, "mistake": is_mistake}


class Driver(Exception):
    """A driver's error, with what drivers add to it."""

    def __init__(self, **known: str) -> None:
        super().__init__("database is locked" if known.get("sqlite_errorname") == "SQLITE_BUSY" else "as it says")
        vars(self).update(known)


def raised(outer: type[Exception], **known: str) -> Exception:
    cause = Driver(**known)
    error = outer(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (raised(OperationalError, sqlstate="40P01"), "contention"),
        (raised(OperationalError, sqlstate="55P03"), "contention"),
        (raised(OperationalError, sqlite_errorname="SQLITE_BUSY"), "contention"),
        (raised(OperationalError, sqlstate="57P01"), "disconnect"),
        (raised(OperationalError, sqlstate="08006"), "disconnect"),
        (raised(OperationalError, sqlite_errorname="SQLITE_CANTOPEN"), "disconnect"),
        (InterfaceError("connection already closed"), "disconnect"),
        (OperationalError("connection refused"), "disconnect"),
        (raised(ProgrammingError, sqlstate="42703"), "mistake"),
        (raised(DataError, sqlstate="22003"), "mistake"),
        (raised(OperationalError, sqlite_errorname="SQLITE_ERROR"), "mistake"),
        (ProgrammingError("wrong"), "mistake"),
        (raised(OperationalError, sqlstate="57014"), None),  # a statement timeout
        (raised(OperationalError, sqlstate="53100"), None),  # a full disk
        (raised(ProgrammingError, sqlstate="42501"), None),  # a missing right
        (raised(OperationalError, sqlite_errorname="SQLITE_FULL"), None),
    ],
)
def test_each_error_is_of_one_kind(error: Exception, kind: str | None) -> None:
    assert [name for name, found in KINDS.items() if found(error)] == ([kind] if kind else [])
