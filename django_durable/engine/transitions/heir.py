"""Heir: a new execution that begins with what another one was given, but not with what became of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connections

from django_durable.clock import sql_now
from django_durable.engine.journal import EXECUTION
from django_durable.engine.transitions.leave import FREE
from django_durable.models import Execution
from django_durable.sql import Sql, build, column_of, execute, field_of, insert_row, value

FRESH: Mapping[str, Any] = {
    **FREE,
    "status": "pending",
    "revision": 1,
    "recoveries": 0,
    "takeovers": "[]",
    "wake_at": None,
    "awaiting": "",
    "pause_requested_at": None,
    "cancel_requested_at": None,
    "ending_as": "",
    "failed_positions": "",
    "blocked_by": "",
    "encoded_output": None,
    "encoded_error": None,
    "successor_id": None,
    "forked_from": None,
    "fork_position": None,
    "moving": False,
    "in_line": False,
    "started_at": None,
    "finished_at": None,
}
"""What no heir takes over."""


def insert_heir(using: str, source_id: UUID, heir_id: UUID, changes: Mapping[str, Any]) -> None:
    """Insert the heir: columns of ``changes``, those of ``FRESH``, all others as the source ``e`` has them."""
    connection = connections[using]
    values: dict[str, Any] = {
        **{field.attname: Sql(f"e.{column_of(field)}") for field in Execution._meta.concrete_fields},
        **FRESH,
        "id": heir_id,
        "seed": secrets.token_hex(16),
        "created_at": sql_now(connection),
        **changes,
    }
    source = build(
        f"FROM {EXECUTION} e WHERE e.id = {{id}}", id=value(connection, field_of(Execution, "id"), source_id)
    )
    execute(using, insert_row(connection, Execution, values, source=source))
