"""note_action: who did what to planes and tenants, on the spine. Ids and verbs only."""

from __future__ import annotations

from django.db import connections

from django_durable.clock import sql_now
from django_durable.ids import time_ordered_id
from django_durable.models import OperatorAction
from django_durable.planes.selection import spine_alias
from django_durable.sql import execute, insert_row

NOBODY = "00000000-0000-0000-0000-000000000000"
"""In place of an execution's id, for an act on a plane or a tenant."""


def note_action(verb: str, actor: str) -> None:
    """Write it down, in the spine's transaction where one is open."""
    spine = spine_alias()
    connection = connections[spine]
    values = {
        "id": time_ordered_id(),
        "execution_id": NOBODY,
        "verb": verb,
        "actor": actor,
        "at": sql_now(connection),
    }
    execute(spine, insert_row(connection, OperatorAction, values))
