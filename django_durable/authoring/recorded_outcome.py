"""What a recorded end stands for: a value, or an error that is the same at every replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from django_durable.engine.journal import Record
from django_durable.errors import ChildFailed, ExecutionCancelled, StepFailed, qualified_name
from django_durable.payloads import decode, decode_failure


def value_of(record: Record, name: str) -> Any:
    """The decoded result of something that has ended. Raises its failure."""
    if record.status == "completed":
        return decode(record.encoded_output or "null")
    if record.status != "cancelled":
        raise_failure(record, name)
    raise StepFailed(
        step=name,
        error_type=qualified_name(ExecutionCancelled),
        message="it was cancelled before it ended",
        attempts=record.attempt,
        position=record.position,
    )


def raise_failure(record: Record, name: str) -> NoReturn:
    """Raise what a recorded failure stands for."""
    if record.kind == "child":
        raise_child_failed(record)
    raise_recorded(name, record.encoded_error, record.attempt, record.position)


def error_of(record: Record, name: str) -> Exception | None:
    """The failure of something that has ended; ``None``: it succeeded."""
    try:
        value_of(record, name)
    except (StepFailed, ChildFailed) as error:
        return error
    return None


def raise_child_failed(record: Record) -> NoReturn:
    """Raise the ``ChildFailed`` that a recorded end stands for, the same at every replay."""
    told = decode_failure(record.encoded_error or "")
    raise ChildFailed(
        told["message"],
        workflow=told.get("workflow", record.name),
        status=told.get("status", "failed"),
        child_id=told.get("child", ""),
        error_type=told.get("error_type", ""),
        lineage=tuple(told.get("error_lineage", ())),
        position=record.position,
    )


def raise_recorded(name: str, encoded_error: str | None, attempts: int, position: int) -> NoReturn:
    """Raise the ``StepFailed`` that a recorded final failure stands for, the same at every replay."""
    raise_told(name, decode_failure(encoded_error or ""), attempts, position)


def raise_told(name: str, told: Mapping[str, Any], attempts: int, position: int) -> NoReturn:
    """The same, of an error that has been read."""
    raise StepFailed(
        step=name,
        error_type=told["type"],
        message=told["message"],
        attempts=attempts,
        lineage=tuple(told.get("lineage", ())),
        traceback=told.get("traceback", ""),
        position=position,
    )
