"""Swallow: a body caught its suspension and went on; the run ends with an error that says so."""

from __future__ import annotations

from django.db import connections, transaction

from django_durable.clock import sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.locking import lock_execution
from django_durable.engine.telling import tell
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.family import close_children, hold, tell_parent
from django_durable.engine.transitions.leave import ENDED, cancel_pending, dead_letter, ended_columns
from django_durable.engine.transitions.undo import Ending, begin_undo
from django_durable.engine.transitions.verbs import write_execution
from django_durable.engine.undos import has_undos
from django_durable.signals import execution_finished
from django_durable.sql import execute


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
            changes = {
                **ENDED,
                **ended_columns(),
                "status": "failed",
                "encoded_output": None,
                "encoded_error": error,
                "failed_positions": "",
                "finished_at": sql_now(connections[using]),
            }
            write_execution(using, claim.id, changes)
            execute(using, cancel_pending(using, claim.id))
            execute(using, dead_letter(using, row, status="failed", error=error))
            SpineWork(using).delete_all(claim.id).run()
            tell_parent(using, parent, row, status="failed", error=error)
            close_children(using, [claim.id])
            tell(using, execution_finished, claim.id)
            return True

    return repeated(using, attempt)
