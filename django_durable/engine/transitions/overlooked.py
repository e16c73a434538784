"""Overlooked: a run that waits for what has ended. Nothing leaves one behind; a deleted child, or a fault, might."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from django_durable.engine.contention import repeated
from django_durable.engine.locking import ExecutionBusy, lock_execution
from django_durable.engine.messages import wake
from django_durable.errors import ExecutionNotFound, PlaneUnavailable
from django_durable.models import Checkpoint, Execution
from django_durable.models.checkpoint import WHOLE
from django_durable.models.execution import ACTIVE


def wake_overlooked(plane: str, execution_id: UUID) -> bool:
    """Wake a waiting run if what it waits for elsewhere is over, or a child is gone; whether that was needed."""

    def attempt() -> bool:
        with transaction.atomic(using=plane):
            _now, row = lock_execution(plane, execution_id, wait=False)
            if row["status"] != "waiting" or not is_overlooked(plane, row):
                return False
            wake(plane, row)
            return True

    try:
        return repeated(plane, attempt)
    except (ExecutionNotFound, ExecutionBusy, PlaneUnavailable):
        return False


def is_overlooked(plane: str, row: Mapping[str, Any]) -> bool:
    """Whether an end that this waiting run asked for has come: of one thing, or of all in a list."""
    for awaited in json.loads(row["awaiting"] or "[]"):
        channels = [awaited] if isinstance(awaited, str) else awaited
        positions = [int(name.partition(":")[2]) for name in channels if name.startswith("at:")]
        if (
            positions
            and len(positions) == len(channels)
            and not any(_is_under_way(plane, row["id"], position) for position in positions)
        ):
            return True
    return False


def _is_under_way(plane: str, execution_id: UUID, position: int) -> bool:
    """Whether something that was begun at a position still runs, or will."""
    here = Checkpoint.objects.using(plane).filter(execution_id=execution_id, position=position)
    whole = here.filter(item=WHOLE).values_list("kind", "status").first()
    if whole is None or whole[1] != "pending":
        return False
    begun = here.filter(status="pending", queued_at__isnull=False)
    if begun.filter(kind="step").exists():
        return True
    children = begun.filter(kind="child").values_list("item", flat=True)
    live = Execution._base_manager.using(plane).filter(
        parent_id=execution_id, parent_position=position, status__in=ACTIVE
    )
    return bool(children) and live.exists()
