"""explain_outage: which database is away, or lacks what, in one line without values."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError, OperationalError, ProgrammingError, connections

from django_durable.cli.schema import missing_tables
from django_durable.database_errors import first_line, is_disconnect, is_mistake
from django_durable.planes.behind import behind
from django_durable.planes.places import all_places, ask
from django_durable.planes.registry import planes_in_use
from django_durable.planes.selection import spine_alias

__all__ = ["explain_outage", "lacking"]

NAMED = 3
"""How many missing tables a message names."""


def explain_outage(error: DatabaseError | InterfaceError) -> str | None:
    """What to tell of an error of the database; ``None`` where the statement itself was wrong."""
    if isinstance(error, (OperationalError, ProgrammingError)):
        try:
            lack = find_lack()
        except (DatabaseError, InterfaceError):
            lack = None  # the database is away, or the caller's transaction is broken
        if lack is not None:
            return lack
    if is_mistake(error):
        return None
    return f"{culprit(error)} is unavailable: {first_line(error)}"


def find_lack() -> str | None:
    """Which database lacks what; ``None`` where none does that answers. Raises the spine's own error."""
    missing = missing_tables(spine_alias())
    if missing:
        return lacking(spine_alias(), missing)
    planes = [place for place in all_places() if not (place.is_closed or place.is_spine)]
    for place, names in ask(planes, lambda one: behind(one.alias)).found:
        if names:
            return (
                f"database {place.alias!r} lacks {len(names)} migration(s); run: manage.py durable planes migrate"
                f" {place.label}"
            )
    return None


def culprit(error: DatabaseError | InterfaceError) -> str:
    """The database that it is about. No error names it: it is the only one there is, or that is silent."""
    spine = spine_alias()
    if not planes_in_use():
        return f"database {spine!r}"
    if is_disconnect(error):
        silent = [alias for alias in (spine, *known_planes()) if not answers(alias)]
        if len(silent) == 1:
            return f"database {silent[0]!r}"
    return "a database"


def known_planes() -> list[str]:
    """The aliases of the planes that are known without the spine, if it is that which is away."""
    try:
        return [place.alias for place in all_places() if not place.is_spine and place.alias in connections.settings]
    except (DatabaseError, InterfaceError):
        return []


def answers(alias: str) -> bool:
    """Whether the database can be reached now."""
    connection = connections[alias]
    try:
        connection.close_if_unusable_or_obsolete()
        connection.ensure_connection()
    except (DatabaseError, InterfaceError):
        return False
    return True


def lacking(using: str, missing: list[str]) -> str:
    """What to tell where the migrations have not run."""
    named = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
    return f"database {using!r} lacks {named}; run: manage.py migrate"
