"""planes migrate: Django's own ``migrate`` on each plane, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

from django.core.management import call_command
from django.db import DatabaseError, InterfaceError, connections

from django_durable.cli.exits import Exit, refusal
from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.places import check_planes
from django_durable.database_errors import is_disconnect
from django_durable.planes.behind import forget_looks
from django_durable.planes.registry import Plane, all_planes, find_plane

__all__ = ["migrate_planes"]


def migrate_planes(names: list[str], options: Options, output: Output) -> None:
    """Migrate these planes, or every one that is not closed. One that fails stops none of the others.

    Raises the refusal that names those that failed; 4 where all of them could not be reached.
    """
    check_planes(names)
    rows = [migrate(plane, output) for plane in wanted(names)]
    forget_looks()
    if output.as_json:
        output.document(rows)
    else:
        output.table(rows, ["plane", "database", "migrated", "error"])
    failed = [row for row in rows if not row["migrated"]]
    if failed:
        output.flush()
        code = Exit.UNAVAILABLE if all(row["unavailable"] for row in failed) else Exit.REFUSED
        raise refusal(f"not migrated: {', '.join(row['plane'] for row in failed)}", code)


def wanted(names: Sequence[str]) -> list[Plane]:
    """The named planes, or all that are not closed; each database once."""
    known = all_planes(fresh=True)
    chosen = [find_plane(name) for name in names] or [known[name] for name in sorted(known) if known[name].claimable]
    return list({plane.database: plane for plane in reversed(chosen)}.values())[::-1]


def migrate(plane: Plane, output: Output) -> dict[str, Any]:
    """Migrate one; what Django tells meanwhile is talk."""
    told = StringIO()
    row = {"plane": plane.name, "database": plane.database, "migrated": True, "unavailable": False, "error": ""}
    output.talk(f"migrating {plane.name}: database {plane.database}")
    try:
        if plane.database not in connections.settings:
            raise LookupError(f"{plane.database!r} is not in DATABASES here")
        call_command("migrate", database=plane.database, interactive=False, stdout=told, stderr=told, no_color=True)
    except Exception as error:  # whatever a migration raises concerns this plane only
        unavailable = isinstance(error, (DatabaseError, InterfaceError)) and is_disconnect(error)
        first_line = next(iter(str(error).strip().splitlines()), "")
        row |= {"migrated": False, "unavailable": unavailable, "error": f"{type(error).__name__}: {first_line}"}
    finally:
        for line in told.getvalue().splitlines():
            output.talk(line)
    return row
