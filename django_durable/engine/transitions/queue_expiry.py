"""Queue expiry: an attempt elsewhere that nobody picked up in time fails, by the hand of the run that waits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connections, transaction

from django_durable.clock import sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.journal import CHECKPOINT, Record
from django_durable.engine.standing import step_intent
from django_durable.engine.transitions.fan_in import settle, this_checkpoint
from django_durable.engine.transitions.wait import lock_fenced
from django_durable.models import Checkpoint
from django_durable.sql import Sql, assignments, build, execute

NOT_BEGUN = Sql("c.begun = c.attempt")


def expire_in_queue(
    claim: Claimed, record: Record, changes: Mapping[str, Any], due_at: datetime | None, queue: str
) -> bool | None:
    """Record the attempt and dispatch the next one, unless it has been picked up; ``None``: the fence refused."""

    def attempt() -> bool | None:
        with transaction.atomic(using=claim.using):
            if not lock_fenced(claim):
                return None
            running = {**claim.row, "status": "running"}
            if due_at is None:
                return settle(claim.using, running, record.position, record.item, changes, NOT_BEGUN)
            connection = connections[claim.using]
            again = {**changes, "queued_at": sql_now(connection)}
            statement = build(
                f"UPDATE {CHECKPOINT} AS c SET {{sets}} WHERE {{here}} AND c.status = 'pending' AND {{fresh}}",
                sets=assignments(connection, Checkpoint, again),
                here=this_checkpoint(claim.using, claim.id, record.position, record.item, "c."),
                fresh=NOT_BEGUN,
            )
            if not execute(claim.using, statement):
                return False
            intent = step_intent(claim.row, record.position, record.item, record.attempt + 2, queue, due_at)
            SpineWork(claim.using).publish(intent).run()
            return True

    return repeated(claim.using, attempt)
