"""A plane that is down is *unavailable*, never "not found" and never a bare driver error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InterfaceError, OperationalError

from django_durable.database_errors import is_disconnect
from django_durable.errors import PlaneUnavailable
from django_durable.planes.breaker import note_failure
from django_durable.planes.registry import planes_in_use


@contextmanager
def reaching(alias: str) -> Iterator[None]:
    """Run a verb on a plane; raises ``PlaneUnavailable`` where its database cannot be reached.

    Without planes the project's one database is down, and its own error says so best.
    """
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        if not planes_in_use() or not is_disconnect(error):
            raise
        note_failure(alias, error)
        raise PlaneUnavailable(f"database {alias!r} cannot be reached right now; nothing was changed") from error
