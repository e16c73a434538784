"""A plane that is down is *unavailable*, never "not found" and never a bare driver error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InterfaceError, OperationalError

from django_durable.database_errors import is_disconnect
from django_durable.errors import PlaneUnavailable
from django_durable.planes.breaker import note_failure
from django_durable.planes.registry import planes_in_use

UNKNOWN = "see what became of it before you repeat it"
"""The connection may have been lost on the way to a commit, or on the way back."""


@contextmanager
def reaching(alias: str, *, told: str = UNKNOWN) -> Iterator[None]:
    """Run a verb on a plane; raises ``PlaneUnavailable`` where its database cannot be reached.

    Without planes the project's one database is down, and its own error says so best. ``told`` ends the message.
    Code of the project does not belong into the block: its own outages are not the plane's.
    """
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        if not planes_in_use() or not is_disconnect(error):
            raise
        note_failure(alias, error)
        raise PlaneUnavailable(f"database {alias!r} cannot be reached right now; {told}") from error
