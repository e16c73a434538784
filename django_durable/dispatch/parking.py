"""Hints whose plane nobody can resolve: backed off, and parked after the cap, for an operator to requeue."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.db import connections

from django_durable.clock import sql_after, sql_now
from django_durable.conf import config
from django_durable.dispatch.hints import TABLE
from django_durable.models import DispatchHint
from django_durable.sql import Sql, assignments, build, execute, field_of, value

PLANE_UNRESOLVED = "plane-unresolved"
PAUSE_SECONDS = 5.0


def note_unresolved(spine: str, hint_id: UUID, token: UUID) -> None:
    """Give the lease back after a failure to resolve the plane; the last of MAX_CLAIM_FAILURES parks the hint.

    Only failures to *resolve* are counted: an outage of a known plane never is.
    """
    connection = connections[spine]
    cap = config().max_claim_failures
    changes = {
        "failures": Sql("failures + 1"),
        "state": Sql(f"CASE WHEN failures + 1 >= %s THEN {int(DispatchHint.State.PARKED)} ELSE state END", (cap,)),
        "category": Sql(f"CASE WHEN failures + 1 >= %s THEN '{PLANE_UNRESOLVED}' ELSE category END", (cap,)),
        "owner": "",
        "token": None,
        "due_at": sql_after(connection, PAUSE_SECONDS),
    }
    execute(spine, _change(spine, hint_id, changes, token))


def requeue_hint(spine: str, hint_id: UUID) -> bool:
    """Put a parked hint back with fresh counters, due now; whether it was parked."""
    connection = connections[spine]
    changes = {
        "failures": 0,
        "category": "",
        "state": DispatchHint.State.LIVE,
        "due_at": sql_now(connection),
    }
    statement = _change(spine, hint_id, changes, None)
    parked = build("{statement} AND state = {parked}", statement=statement, parked=Sql("%s", (2,)))
    return bool(execute(spine, parked))


def _change(spine: str, hint_id: UUID, changes: Mapping[str, object], token: UUID | None) -> Sql:
    connection = connections[spine]
    held = Sql("")
    if token is not None:
        bound = value(connection, field_of(DispatchHint, "token"), token)
        held = build(" AND token = {token}", token=bound)
    return build(
        f"UPDATE {TABLE} SET {{changes}} WHERE id = {{id}}{{held}}",
        changes=assignments(connection, DispatchHint, changes),
        id=value(connection, field_of(DispatchHint, "id"), hint_id),
        held=held,
    )
