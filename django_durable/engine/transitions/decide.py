"""Decide: an approval is requested with the suspension of its wait, and decided once under the execution's lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from django_durable.clock import sql_now
from django_durable.engine.chain import lock_current
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.messages import put, waits_for, wake
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.verbs import Attribution, note
from django_durable.errors import ExecutionClosed, InvalidTransition
from django_durable.models import ApprovalRequest
from django_durable.models.approval import Outcome
from django_durable.payloads import encode
from django_durable.sql import Sql, assignments, build, execute, field_of, insert_row, value

TABLE = ApprovalRequest._meta.db_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is decided, by whom and why."""

    approved: bool
    by: Attribution
    data: Any


def channel_of(position: int) -> str:
    """Where the decision of the request at this position is sent: a decision is bound to what was asked there."""
    return f"approval:{position}"


def request(claim: Claimed, position: int, asked: Mapping[str, Any]) -> list[Sql]:
    """Open the request of this position; one that was there before a retry is asked anew."""
    connection = connections[claim.using]
    here = build(
        "execution_id = {id} AND position = {position}",
        id=value(connection, field_of(ApprovalRequest, "execution_id"), claim.id),
        position=value(connection, field_of(ApprovalRequest, "position"), position),
    )
    fresh = {"outcome": "", "actor": "", "reason": "", "decided_at": None}
    row = {"execution_id": claim.id, "position": position, "requested_at": sql_now(connection), **asked, **fresh}
    renewed = assignments(connection, ApprovalRequest, {**asked, **fresh})
    insert = insert_row(
        connection,
        ApprovalRequest,
        row,
        source=Sql("FROM (SELECT 1 AS one) AS one WHERE 1 = 1"),
        on_conflict="ON CONFLICT DO NOTHING",
    )
    changes = build(f"UPDATE {TABLE} SET {{renewed}} WHERE {{here}} AND outcome <> ''", renewed=renewed, here=here)
    return [changes, insert]


def lapse(claim: Claimed, position: int) -> list[Sql]:
    """Close the request: its time is over."""
    connection = connections[claim.using]
    changes = {"outcome": Outcome.TIMED_OUT, "decided_at": sql_now(connection)}
    return [
        build(
            f"UPDATE {TABLE} SET {{changes}} WHERE execution_id = {{id}} AND position = {{position}}"
            " AND outcome = ''",
            changes=assignments(connection, ApprovalRequest, changes),
            id=value(connection, field_of(ApprovalRequest, "execution_id"), claim.id),
            position=value(connection, field_of(ApprovalRequest, "position"), position),
        )
    ]


def decide(
    using: str, execution_id: UUID, name: str, decision: Decision, check: Callable[[ApprovalRequest], None]
) -> bool:
    """Decide the newest request of this name, with the message to its wait; whether this call did.

    ``check`` may refuse by raising, with the request that would be decided.
    """

    def attempt() -> bool:
        with transaction.atomic(using=using):
            now, row = lock_current(using, execution_id)
            asked = _newest(using, row["id"], name)
            if asked is None:
                raise InvalidTransition(f"execution {row['id']} has requested no approval {name!r}")
            check(asked)
            if asked.outcome or (asked.expires_at is not None and now > asked.expires_at):
                return False
            if row["status"] not in SOURCES["decide"] or row["ending_as"]:
                raise ExecutionClosed(f"execution {row['id']} is {row['status']}; its approval {name!r} is closed")
            _decide(using, row, asked, decision, now)
            return True

    return repeated(using, attempt)


def _newest(using: str, execution_id: UUID, name: str) -> ApprovalRequest | None:
    rows = ApprovalRequest.objects.using(using).filter(execution_id=execution_id, name=name)
    return rows.order_by("-position").first()


def _decide(using: str, row: Mapping[str, Any], asked: ApprovalRequest, decision: Decision, now: datetime) -> None:
    connection = connections[using]
    outcome = Outcome.APPROVED if decision.approved else Outcome.REJECTED
    changes = {
        "outcome": outcome,
        "actor": decision.by.actor,
        "reason": decision.by.reason,
        "decided_at": now,
    }
    mine = value(connection, field_of(ApprovalRequest, "id"), asked.pk)
    execute(
        using,
        build(
            f"UPDATE {TABLE} SET {{changes}} WHERE id = {{id}}",
            changes=assignments(connection, ApprovalRequest, changes),
            id=mine,
        ),
    )
    told = {
        "approved": decision.approved,
        "actor": decision.by.actor,
        "reason": decision.by.reason,
        "data": decision.data,
        "decided_at": now,
    }
    channel = channel_of(asked.position)
    put(using, row, channel, encode(told, where=f"decision of approval {asked.name!r}"), now)
    if waits_for(row, channel):
        wake(using, row)
    note(using, row, now, "approve" if decision.approved else "reject", decision.by)
