"""Ending: a turn ends its execution with a result or with an error.

One fenced batch where the execution has neither a parent nor anything running elsewhere; otherwise a transaction that
locks the parent first, tells it, and closes what would be left behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connections, transaction

from django_durable.clock import sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.telling import tell
from django_durable.engine.transitions.family import close_children, hold, tell_parent
from django_durable.engine.transitions.leave import (
    ENDED,
    Pages,
    cancel_pending,
    dead_letter,
    ended_columns,
    run_fenced,
)
from django_durable.engine.transitions.singleton import free_slot
from django_durable.signals import execution_finished
from django_durable.sql import Sql


def complete(claim: Claimed, pages: Pages, *, output: str, family: bool = False) -> bool:
    """End with a result. ``family``: something that the run has started elsewhere may still be under way."""
    changes = {
        **ENDED,
        **ended_columns(),
        "status": "completed",
        "encoded_output": output,
        "encoded_error": None,
        "finished_at": sql_now(connections[claim.using]),
    }
    pending = [cancel_pending(claim.using, claim.id)] if family else []
    return _end(claim, changes, [*pages.consequences(claim), *pending], family)


def fail(
    claim: Claimed,
    pages: Pages,
    *,
    error: str,
    failed_positions: str,
    status: str = "failed",
    family: bool = False,
) -> bool:
    """End without a result; the dead letter is written with it."""
    changes = {
        **ENDED,
        **ended_columns(),
        "status": status,
        "encoded_output": None,
        "encoded_error": error,
        "failed_positions": failed_positions,
        "finished_at": sql_now(connections[claim.using]),
    }
    letter = dead_letter(claim.using, claim.row, status=status, error=error)
    consequences = [*pages.consequences(claim), cancel_pending(claim.using, claim.id), letter]
    return _end(claim, changes, consequences, family)


def _end(claim: Claimed, changes: Mapping[str, Any], consequences: Sequence[Sql], family: bool) -> bool:
    def write() -> bool:
        return run_fenced(claim, changes, consequences, SpineWork(claim.using).delete_all(claim.id))

    if claim.row["parent_id"] is None and claim.row["singleton"] is None and not family:
        held = write()
    else:
        held = repeated(claim.using, lambda: _end_in_family(claim, changes, write))
    if held:
        tell(claim.using, execution_finished, claim.id)
    return held


def _end_in_family(claim: Claimed, changes: Mapping[str, Any], write: Any) -> bool:
    with transaction.atomic(using=claim.using):
        parent = hold(claim.using, claim.row["parent_id"])
        if not write():
            return False
        tell_parent(
            claim.using,
            parent,
            claim.row,
            status=changes["status"],
            output=changes["encoded_output"],
            error=changes["encoded_error"],
        )
        close_children(claim.using, [claim.id])
        free_slot(claim.using, claim.row)
        return True
