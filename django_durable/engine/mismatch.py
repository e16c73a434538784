"""What is said where the code does not match the history: what stands there, what was asked for, what to do."""

from __future__ import annotations

from django_durable.engine.journal import Record
from django_durable.errors import NonDeterminismError

REMEDY = "deploy the code that wrote the history, then resume"


def other_operation(record: Record, kind: str, name: str) -> NonDeterminismError:
    """The record at this position is of another kind or name."""
    return NonDeterminismError(
        f"position {record.position}: the history has {record.kind} {record.name!r}, the code asks for {kind}"
        f" {name!r}; {REMEDY}"
    )


def derived_value(position: int, kind: str, name: str) -> NonDeterminismError:
    """Nothing is recorded here, but after it: only a derived value leaves such a gap."""
    return NonDeterminismError(
        f"position {position}: the history has a derived value (ctx.uuid() or ctx.random()), the code asks for {kind}"
        f" {name!r}; {REMEDY}"
    )


def early_end(record: Record) -> NonDeterminismError:
    """The code ended before this record."""
    return NonDeterminismError(
        f"position {record.position}: the history has {record.kind} {record.name!r}, but the code ended before it;"
        f" {REMEDY}"
    )


def unknown_undo(record: Record) -> NonDeterminismError:
    """An earlier run of the chain registered an undo step that no code here declares."""
    return NonDeterminismError(
        f"position {record.position}: an earlier run registered undo step {record.name!r}, which is not declared"
        f" here; {REMEDY}"
    )


def other_thread() -> NonDeterminismError:
    """The context belongs to the turn's thread."""
    return NonDeterminismError(
        "the context was used from another thread; call ctx from the workflow's own thread only"
    )


def other_turn(position: int) -> NonDeterminismError:
    """Somebody else wrote while this turn held the execution."""
    return NonDeterminismError(f"position {position} was written by another turn while this one held the execution")
