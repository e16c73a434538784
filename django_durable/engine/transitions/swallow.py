"""Swallow: a body caught its suspension and went on; the run ends with an error that says so."""

from __future__ import annotations

from django.db import transaction

from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.locking import lock_execution
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.end_locked import end_locked
from django_durable.engine.transitions.family import hold
from django_durable.engine.transitions.undo import Ending, begin_undo
from django_durable.engine.undos import has_undos


def fail_suspended(claim: Claimed, error: str) -> bool:
    """Fail the execution that this turn has just suspended, unless it has moved on since: a compare-and-set."""
    using = claim.using

    def attempt() -> bool:
        with transaction.atomic(using=using):
            parent = hold(using, claim.row["parent_id"])
            _now, row = lock_execution(using, claim.id)
            moved = row["revision"] not in (claim.row["revision"], claim.row["revision"] + 1)
            if moved or row["lease_token"] is not None or row["status"] not in SOURCES["fail"] or row["ending_as"]:
                return False
            if has_undos(using, row):
                begin_undo(using, row, Ending(status="failed", error=error))
                return True
            end_locked(using, row, parent, status="failed", error=error)
            return True

    return repeated(using, attempt)
