"""Call off: what a run has started elsewhere and no longer wants is cancelled, by the run's own hand."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connections, transaction

from django_durable.clock import sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.journal import CHECKPOINT
from django_durable.engine.transitions.family import close_started_at
from django_durable.engine.transitions.wait import lock_fenced
from django_durable.errors import ExecutionCancelled
from django_durable.models import Checkpoint, Execution
from django_durable.payloads import encode_failure
from django_durable.sql import assignments, build, execute, field_of, join, value


def call_off(claim: Claimed, positions: Sequence[int]) -> bool | None:
    """Cancel what is still under way at these positions, items included; ``None``: the fence refused."""
    using = claim.using
    # What tells it from something that was cancelled because its run ended.
    error = encode_failure(ExecutionCancelled("it was cancelled before it ended"))

    def attempt() -> bool | None:
        with transaction.atomic(using=using):
            if not lock_fenced(claim):
                return None
            connection = connections[using]
            changes = {"status": "cancelled", "encoded_error": error, "finished_at": sql_now(connection)}
            statement = build(
                f"UPDATE {CHECKPOINT} AS c SET {{sets}} WHERE c.execution_id = {{id}}"
                " AND c.position IN ({positions}) AND c.status = 'pending'",
                sets=assignments(connection, Checkpoint, changes),
                id=value(connection, field_of(Execution, "id"), claim.id),
                positions=join(", ", [value(connection, field_of(Checkpoint, "position"), p) for p in positions]),
            )
            execute(using, statement)
            close_started_at(using, claim.id, positions)
            SpineWork(using).withdraw_steps(claim.id, positions).run()
            return True

    return repeated(using, attempt)
