"""end_locked: end an execution without a result whose row this transaction has locked, whoever held it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connections

from django_durable.clock import sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.telling import tell
from django_durable.engine.transitions.family import close_children, tell_parent
from django_durable.engine.transitions.leave import ENDED, cancel_pending, dead_letter, ended_columns
from django_durable.engine.transitions.singleton import free_slot
from django_durable.engine.transitions.verbs import write_execution
from django_durable.signals import execution_finished
from django_durable.sql import execute

Parent = Mapping[str, Any] | None


def end_locked(
    using: str,
    row: Mapping[str, Any],
    parent: Parent,
    *,
    status: str,
    error: str,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Its row, its pending checkpoints, a dead letter, its hints, its parent, its children and its singleton's slot.

    The parent's row is locked too, before it. ``more``: other columns that change with it.
    """
    changes = {
        **ENDED,
        **ended_columns(),
        "status": status,
        "encoded_output": None,
        "encoded_error": error,
        # Of a run that died while its undo steps ran: a retry resumes them, and ends it as it was decided.
        "failed_positions": row["failed_positions"] if row["ending_as"] else "",
        "finished_at": sql_now(connections[using]),
        **(more or {}),
    }
    write_execution(using, row["id"], changes)
    execute(using, cancel_pending(using, row["id"]))
    execute(using, dead_letter(using, row, status=status, error=error))
    SpineWork(using).delete_all(row["id"]).run()
    tell_parent(using, parent, row, status=status, error=error)
    close_children(using, [row["id"]])
    free_slot(using, row)
    tell(using, execution_finished, row["id"])
