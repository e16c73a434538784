"""Republish: give a live execution that lost its hint the one that its state stands for."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.locking import ExecutionBusy, lock_execution
from django_durable.engine.standing import standing_intent, standing_steps
from django_durable.errors import ExecutionNotFound, PlaneUnavailable
from django_durable.models import DispatchHint
from django_durable.planes.selection import spine_alias

TURN = DispatchHint.Kind.TURN


def republish(plane: str, execution_id: UUID) -> bool:
    """Publish the standing intent unless its hint is there; whether that was needed. Terminal rows get nothing.

    A hint of an earlier revision is none: an older copy of the spine has it, or another plane that it moved from.
    """

    def attempt() -> bool:
        with transaction.atomic(using=plane):
            _now, row = lock_execution(plane, execution_id, wait=False)
            hints = DispatchHint.objects.using(spine_alias()).filter(execution_id=execution_id, kind=TURN)
            if hints.filter(revision__gte=row["revision"]).exists():
                return False  # it was published, or given back, in the meantime
            intent = standing_intent(plane, row)
            if intent is None:
                return False
            SpineWork(plane).publish(intent).run()
            return True

    try:
        return repeated(plane, attempt)
    except (ExecutionNotFound, ExecutionBusy, PlaneUnavailable):
        return False


def republish_steps(plane: str, execution_id: UUID) -> int:
    """Publish the attempts elsewhere that have lost their hint; how many."""

    def attempt() -> int:
        with transaction.atomic(using=plane):
            _now, row = lock_execution(plane, execution_id, shared=True, wait=False)
            hints = DispatchHint.objects.using(spine_alias()).filter(execution_id=execution_id).exclude(kind=TURN)
            known = set(hints.values_list("position", "item", "revision"))
            work, published = SpineWork(plane), 0
            for intent in standing_steps(plane, row):
                if (intent.position, intent.item, intent.revision) not in known:
                    work.publish(intent)
                    published += 1
            work.run()
            return published

    try:
        return repeated(plane, attempt)
    except (ExecutionNotFound, ExecutionBusy, PlaneUnavailable):
        return 0
