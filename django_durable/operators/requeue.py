"""requeue: give a parked hint another chance, with fresh counters."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections, transaction

from django_durable.clock import read_now
from django_durable.dispatch.parking import requeue_hint
from django_durable.engine.transitions.verbs import insert_action
from django_durable.errors import ExecutionNotFound, InvalidTransition, PlaneUnavailable
from django_durable.ids import time_ordered_id
from django_durable.models import DispatchHint, OperatorNote
from django_durable.operators.actors import attribution
from django_durable.planes.registry import alias_of
from django_durable.planes.selection import spine_alias
from django_durable.sql import execute, insert_row

__all__ = ["requeue"]

logger = logging.getLogger("django_durable")


def requeue(hint_id: UUID | str, *, actor: Any, reason: str = "") -> DispatchHint:
    """Make a parked hint due now; the hint as it is then. It and who did it commit together, on the spine.

    The reason is kept on the execution's plane, where that can be reached: it may hold a tenant's data. Raises
    ``ExecutionNotFound`` for an unknown hint, ``InvalidTransition`` for one that is not parked, ``ValueError`` for
    an empty actor.
    """
    by = attribution(actor, reason, required=True)
    spine = spine_alias()
    hint = _find(spine, hint_id)
    note = OperatorNote(
        id=time_ordered_id(),
        execution_id=hint.execution_id,
        verb="requeue",
        actor=by.actor,
        reason=by.reason,
        revision=hint.revision,
        at=read_now(spine),
    )
    with transaction.atomic(using=spine):
        if not requeue_hint(spine, hint.pk):
            raise InvalidTransition(f"hint {hint.pk} is not parked; there is nothing to requeue")
        execute(spine, insert_action(note))
    _keep_reason(hint, note)
    hint.refresh_from_db(using=spine)
    return hint


def _find(spine: str, hint_id: UUID | str) -> DispatchHint:
    try:
        wanted = hint_id if isinstance(hint_id, UUID) else UUID(str(hint_id))
    except ValueError:
        raise ExecutionNotFound(f"{str(hint_id)[:64]!r} is not the id of a hint (a UUID)") from None
    hint = DispatchHint.objects.using(spine).filter(pk=wanted).first()
    if hint is None:
        raise ExecutionNotFound(f"there is no hint {wanted}")
    return hint


def _keep_reason(hint: DispatchHint, note: OperatorNote) -> None:
    """Beside the other notes of the execution; a plane that is still away loses the reason, not the act."""
    values = {field.attname: getattr(note, field.attname) for field in OperatorNote._meta.concrete_fields}
    try:
        alias = alias_of(hint.plane)
        with transaction.atomic(using=alias):
            execute(alias, insert_row(connections[alias], OperatorNote, values))
    except (PlaneUnavailable, DatabaseError, InterfaceError) as error:
        logger.warning("the reason for requeueing hint %s could not be kept (%s)", hint.pk, type(error).__name__)
