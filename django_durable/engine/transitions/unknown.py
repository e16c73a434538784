"""Block what nobody here can claim: its workflow or version is not registered in this code."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from django_durable.clock import read_now
from django_durable.dispatch.hints import Intent
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.locking import ExecutionBusy, lock_execution
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.family import hold_parent
from django_durable.engine.transitions.leave import FREE
from django_durable.engine.transitions.recover import end_overdue, note_takeover
from django_durable.engine.transitions.verbs import write_execution
from django_durable.errors import ExecutionNotFound, PlaneUnavailable, UnknownWorkflow
from django_durable.models import DispatchHint
from django_durable.payloads import encode_failure
from django_durable.planes.selection import spine_alias


def block_unclaimable(using: str, hint_id: UUID, execution_id: UUID, error: UnknownWorkflow, code: str) -> bool:
    """Block a live execution whose hint is due or whose lease has lapsed; one past its deadline is timed out.

    Costs no attempt and, unless a lease lapsed, no recovery. Other code claims it from there. A hint that is no
    longer this execution's (older, renewed, or another worker's by now) changes nothing.
    """

    def attempt() -> bool:
        with transaction.atomic(using=using):
            parent = hold_parent(using, execution_id, wait=False)
            now, row = lock_execution(using, execution_id, wait=False)
            late = row["deadline"] is not None and row["deadline"] <= now
            hint = _standing_hint(hint_id, row)
            if hint is None or row["status"] not in SOURCES["time_out" if late else "block"]:
                return False
            if late:
                end_overdue(using, row, parent)
            else:
                _block(using, row, hint, error, code, now)
            return True

    try:
        return repeated(using, attempt)
    except (ExecutionNotFound, ExecutionBusy, PlaneUnavailable):
        return False


def _standing_hint(hint_id: UUID, row: Mapping[str, Any]) -> DispatchHint | None:
    """The hint, if it is due and is what the locked row stands for.

    It is only read: who commits the row's change first wins, also where the spine is another database.
    """
    spine = spine_alias()
    hint = DispatchHint.objects.using(spine).filter(pk=hint_id, due_at__lte=read_now(spine)).first()
    if hint is None or (hint.revision, hint.epoch) != (row["revision"], row["epoch"]):
        return None
    return hint if row["lease_token"] in (None, hint.token) else None


def _block(
    using: str, row: Mapping[str, Any], hint: DispatchHint, error: UnknownWorkflow, code: str, now: datetime
) -> None:
    revision = row["revision"] + 1
    changes: dict[str, Any] = {
        **FREE,
        "status": "blocked",
        "wake_at": None,
        "awaiting": "",
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
        tenant=row["tenant"],
        opening=row["started_at"] is None,
        state=DispatchHint.State.BLOCKED,
        avoid=code,
    )
    work = SpineWork(using)
    if hint.token is not None:
        work.acknowledge(hint.pk, hint.token)
    work.publish(intent).run()
