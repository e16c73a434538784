"""Block what nobody here can claim: its workflow or version is not registered in this code."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from django_durable.dispatch.hints import Intent
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.locking import lock_execution
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.verbs import write_execution
from django_durable.errors import ExecutionNotFound, UnknownWorkflow
from django_durable.models import DispatchHint
from django_durable.payloads import encode_failure


def block_unclaimable(using: str, execution_id: UUID, error: UnknownWorkflow, code: str) -> bool:
    """Pending or waiting → blocked; costs no recovery and no attempt. Other code claims it from there."""

    def attempt() -> bool:
        with transaction.atomic(using=using):
            _now, row = lock_execution(using, execution_id)
            if row["status"] not in SOURCES["block"] or row["lease_token"] is not None:
                return False
            revision = row["revision"] + 1
            changes = {
                "status": "blocked",
                "wake_at": None,
                "encoded_error": encode_failure(error),
                "blocked_by": code,
                "revision": revision,
            }
            write_execution(using, execution_id, changes)
            intent = Intent(
                execution_id=execution_id,
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
            return True

    try:
        return repeated(using, attempt)
    except ExecutionNotFound:
        return False
