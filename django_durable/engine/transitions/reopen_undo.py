"""Reopen the undo: a retry of a run whose undo steps have begun goes on with those, and with nothing else.

What was undone must not be built upon: a payment that was refunded stays recorded as a step that succeeded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django_durable.engine.transitions.undo import Ending, begin_undo
from django_durable.engine.undos import SAGA, UNDONE, read_undos
from django_durable.errors import InvalidTransition
from django_durable.models import Checkpoint
from django_durable.models.checkpoint import UNDO


def undo_began(using: str, row: Mapping[str, Any]) -> bool:
    """Whether undo steps of what ended this locked run have begun: those of the whole run, or those of a saga block
    that the fatal error left. A block whose error the body handled is none of them."""
    if row["ending_as"]:
        return True
    cut = json.loads(row["failed_positions"] or "{}").get("from")
    if cut is None:
        return False
    checkpoints = Checkpoint.objects.using(using).filter(execution_id=row["id"])
    blocks = checkpoints.filter(kind=SAGA, name=UNDONE, position__gte=cut).values_list("position", "encoded_output")
    return any(
        checkpoints.filter(item=UNDO, position__gte=int(start or 0), position__lt=end).exists()
        for end, start in blocks
    )


def check_resumable(using: str, row: Mapping[str, Any]) -> None:
    """Raise ``InvalidTransition`` where nothing is left to undo."""
    undos = read_undos(using, row["id"])
    if not undos.due() and not undos.failed():
        raise InvalidTransition(
            f"execution {row['id']} is {row['status']} and its undo steps have run; start a new execution instead"
        )


def resume_undo(using: str, row: Mapping[str, Any]) -> None:
    """Back to ``compensating``; it ends again as it had ended, or was about to."""
    stored = json.loads(row["failed_positions"] or "{}")
    error = stored.pop("error", None) or (None if row["ending_as"] else row["encoded_error"])
    begin_undo(using, row, Ending(status=row["ending_as"] or row["status"], error=error, ended_by=stored))
