"""What people and code read of an execution: its history, its published values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django_durable.authoring.budget import Budget
from django_durable.models import Checkpoint, Execution
from django_durable.payloads import decode, describe_failure

OWN_WORDS = ("blocked", "dead", "timed_out")
"""Statuses whose error is the engine's own text, which never carries a payload."""


def read_history(execution: Execution[Any]) -> list[dict[str, Any]]:
    """The checkpoints in order, as plain dictionaries."""
    rows = Checkpoint.objects.using(execution.using).filter(execution_id=execution.pk)
    return [_entry(row) for row in rows.order_by("position", "item")]


def _entry(row: Checkpoint) -> dict[str, Any]:
    return {
        "position": row.position,
        "kind": row.kind,
        "name": row.name,
        "status": row.status,
        "attempts": row.attempt,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "output": None if row.encoded_output is None else decode(row.encoded_output),
        "error": None if row.encoded_error is None else describe_failure(row.encoded_error),
    }


def read_value(execution: Execution[Any], key: str, default: Any) -> Any:
    """The last recorded ``ctx.set_value(key, …)``."""
    encoded = stored_value(execution, key)
    return default if encoded is None else decode(encoded)


def stored_value(execution: Execution[Any], key: str) -> str | None:
    """The same as it is stored; ``None`` where nothing is."""
    rows = Checkpoint.objects.using(execution.using).filter(execution_id=execution.pk, kind="value", name=key)
    return rows.order_by("-position").values_list("encoded_output", flat=True).first()


def read_budget(execution: Execution[Any]) -> dict[str, Decimal]:
    """What is left of each name of the run's budget after what is recorded."""
    charges = Checkpoint.objects.using(execution.using).filter(
        execution_id=execution.pk, kind="spend", status="completed"
    )
    found = charges.values_list("name", "encoded_output")
    return Budget(execution.budget).remaining((name, decode(output or "0")) for name, output in found)
