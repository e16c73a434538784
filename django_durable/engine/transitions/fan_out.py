"""Fan-out: the items of a map are recorded together, and the first of them are started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connections, transaction

from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.transitions.fan_in import start_items
from django_durable.engine.transitions.wait import lock_fenced
from django_durable.models import Join
from django_durable.sql import execute, insert_row


@dataclass(frozen=True, slots=True)
class Plan:
    """How many items there are, how many at a time, and when to stop."""

    position: int
    needs: int
    concurrency: int
    tolerated: int | None
    min_successful: int | None


def begin_items(using: str, row: Mapping[str, Any], plan: Plan) -> None:
    """Count from nothing, and start the first items. The caller has appended them in this transaction."""
    values = {
        "execution_id": row["id"],
        "position": plan.position,
        "needs": plan.needs,
        "settled": 0,
        "failed": 0,
        "tolerated": plan.tolerated,
        "min_successful": plan.min_successful,
        "in_flight": 0,
        "concurrency": plan.concurrency,
    }
    execute(using, insert_row(connections[using], Join, values))
    start_items(using, row, plan.position, plan.concurrency)


def refill(claim: Claimed, position: int) -> bool | None:
    """Start items in free places: a retry has put some back. ``None``: the fence refused."""

    def attempt() -> bool | None:
        with transaction.atomic(using=claim.using):
            if not lock_fenced(claim):
                return None
            join = Join.objects.using(claim.using).filter(execution_id=claim.id, position=position).first()
            if join is None:
                return False
            room = join.concurrency - join.in_flight
            return start_items(claim.using, claim.row, position, room) > 0 if not join.is_decided else False

    return repeated(claim.using, attempt)
