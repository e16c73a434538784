"""Block what nobody here can claim: its workflow or version is not registered in this code."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from django_durable.dispatch.hints import Intent, take_due
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.locking import lock_execution
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.family import hold_parent
from django_durable.engine.transitions.leave import FREE
from django_durable.engine.transitions.recover import end_overdue, note_takeover
from django_durable.engine.transitions.verbs import write_execution
from django_durable.errors import ExecutionNotFound, PlaneUnavailable, UnknownWorkflow
from django_durable.models import DispatchHint
from django_durable.payloads import encode_failure


def block_unclaimable(using: str, hint_id: UUID, execution_id: UUID, error: UnknownWorkflow, code: str) -> bool:
    """Block a live execution whose hint is due or whose lease has lapsed; one past its deadline is timed out.

    Costs no attempt and, unless a lease lapsed, no recovery. Other code claims it from there.
    """

    def attempt() -> bool:
        with transaction.atomic(using=using):
            parent = hold_parent(using, execution_id)
            now, row = lock_execution(using, execution_id)
            late = row["deadline"] is not None and row["deadline"] <= now
            if row["status"] not in SOURCES["time_out" if late else "block"] or not take_due(hint_id):
                return False
            if late:
                end_overdue(using, row, parent)
            else:
                _block(using, row, error, code, now)
            return True

    try:
        return repeated(using, attempt)
    except (ExecutionNotFound, PlaneUnavailable):
        return False


def _block(using: str, row: Mapping[str, Any], error: UnknownWorkflow, code: str, now: datetime) -> None:
    revision = row["revision"] + 1
    changes: dict[str, Any] = {
        **FREE,
        "status": "blocked",
        "wake_at": None,
        "encoded_error": encode_failure(error),
        "blocked_by": code,
        "revision": revision,
    }
    if row["lease_token"] is not None:
        changes["takeovers"] = note_takeover(row, now, "lease expired")
        changes["recoveries"] = row["recoveries"] + 1
    write_execution(using, row["id"], changes)
    intent = Intent(
        execution_id=row["id"],
        workflow=row["workflow"],
        version=row["version"],
        revision=revision,
        epoch=row["epoch"],
        queue=row["queue"],
        priority=row["priority"],
        state=DispatchHint.State.BLOCKED,
        avoid=code,
    )
    SpineWork(using).publish(intent).run()
