"""Many rows at once, written past the engine: what years of operation leave behind."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from django_durable.ids import time_ordered_id
from django_durable.models import Checkpoint, DeadLetter, DispatchHint, Execution, Message, OperatorNote, Schedule
from django_durable.payloads import encode, encode_failure

__all__ = [
    "ERROR",
    "PAYLOAD",
    "make_checkpoints",
    "make_everything",
    "make_executions",
    "make_hints",
    "make_letters",
    "make_schedules",
]

PAYLOAD = encode({"rows": "x" * 1_000_000}, where="a test")
ERROR = encode_failure(ValueError("y" * 200_000), limit=250_000)
SMALL_ERROR = encode_failure(ValueError("small"))


def make_executions(count: int, *, payload: str = "{}", error: str | None = None, **columns: Any) -> list[UUID]:
    """So many, the oldest first, each a child of the one before."""
    now, rows, parent = timezone.now(), [], None
    for number, id in enumerate(sorted(time_ordered_id() for _ in range(count))):
        row: dict[str, Any] = {
            "id": id,
            "chain_id": id,
            "root_id": id,
            "parent_id": parent,
            "workflow": "admin.many",
            "version": "1",
            "key": f"key-{number}",
            "queue": "durable",
            "status": "failed" if error else "completed",
            "encoded_input": payload,
            "encoded_output": None if error else "1",
            "encoded_error": error,
            "seed": "0" * 32,
            "created_at": now - timedelta(hours=count - number),
            **columns,
        }
        rows.append(Execution(**row))
        parent = id
    QuerySet(Execution).bulk_create(rows)
    return [row.pk for row in rows]


def make_checkpoints(execution_id: UUID, count: int, **columns: Any) -> None:
    now = timezone.now()
    row: dict[str, Any] = {
        "kind": "step",
        "name": "shop.workflows.charge_the_customer",
        "status": "completed",
        "attempt": 1,
        "encoded_output": encode({"id": "pay-1", "amount": "12.50", "note": "<b>'\"&" * 20}, where="a test"),
        "started_at": now,
        "finished_at": now + timedelta(milliseconds=12),
        **columns,
    }
    Checkpoint.objects.bulk_create(
        Checkpoint(execution_id=execution_id, position=position, **row) for position in range(count)
    )


def make_letters(
    execution_ids: Iterable[UUID], *, retried: int = 0, error: str = SMALL_ERROR, **columns: Any
) -> None:
    """One each; of the first so many, somebody has retried."""
    now = timezone.now()
    DeadLetter.objects.bulk_create(
        DeadLetter(
            execution_id=id,
            generation=1,
            workflow="admin.many",
            version="1",
            status="failed",
            encoded_error=error,
            created_at=now,
            retried_at=now if number < retried else None,
            retried_by="anna" if number < retried else "",
            **columns,
        )
        for number, id in enumerate(execution_ids)
    )


def make_hints(execution_ids: Iterable[UUID], **columns: Any) -> None:
    now = timezone.now()
    DispatchHint.objects.bulk_create(
        DispatchHint(
            execution_id=id,
            revision=1,
            queue="durable",
            definition="d",
            due_at=now.replace(microsecond=0) + timedelta(seconds=number // 3),
            **columns,
        )
        for number, id in enumerate(execution_ids)
    )
    if connection.vendor == "sqlite":
        # Whole seconds as the engine writes them; Django's own text has no fraction then.
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE django_durable_dispatchhint SET due_at = due_at || '.000000' WHERE due_at NOT LIKE '%.%'"
            )


def make_schedules(ids: Iterable[UUID]) -> None:
    """Under these ids."""
    now = timezone.now()
    Schedule.objects.bulk_create(
        Schedule(
            id=id,
            name=f"schedule {id}",
            workflow="admin.many",
            encoded_input=PAYLOAD,
            every_seconds=60.0,
            anchor_at=now,
            next_at=now,
            due_at=now,
            created_at=now,
        )
        for id in ids
    )


def make_everything(execution_ids: Iterable[UUID]) -> None:
    """Messages and notes, many for each."""
    now = timezone.now()
    for id in execution_ids:
        Message.objects.bulk_create(
            Message(execution_id=id, channel="signal:go", payload=PAYLOAD if number == 0 else "1", accepted_at=now)
            for number in range(20)
        )
        OperatorNote.objects.bulk_create(
            OperatorNote(execution_id=id, verb="pause", actor="anna", revision=1, at=now) for _ in range(20)
        )
