"""pause_queue, resume_queue, change_queue: what operators do with a queue's limits. On the spine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction

from django_durable.clock import read_now
from django_durable.dispatch.flow_queue import FlowQueue, check_limits, queue_name, refresh
from django_durable.durations import seconds
from django_durable.errors import InvalidTransition
from django_durable.models import QueueLimit
from django_durable.operators.actors import attribution
from django_durable.planes.selection import spine_alias

__all__ = ["change_queue", "pause_queue", "resume_queue"]


def pause_queue(queue: str | FlowQueue, *, actor: object) -> None:
    """Admit nothing more to a queue until ``resume_queue``; what runs goes on. Raises ``InvalidTransition``."""
    _write(queue, actor, {"paused": True})


def resume_queue(queue: str | FlowQueue, *, actor: object) -> None:
    """Admit again. Raises ``InvalidTransition`` for a queue without limits."""
    _write(queue, actor, {"paused": False})


def change_queue(
    queue: str | FlowQueue,
    *,
    actor: object,
    concurrency: int | None,
    rate: tuple[int, float | timedelta] | None,
) -> None:
    """Set other limits than the code declares, until its declaration changes; ``None`` is no limit.

    What runs above a lower limit goes on. Raises ``ValueError``, ``TypeError``, ``InvalidTransition``.
    """
    check_limits(concurrency, rate)
    count, period = rate or (None, None)
    length = None if period is None else seconds(period, name="period")
    _write(queue, actor, {"concurrency": concurrency, "rate": count, "period_seconds": length})


def _write(queue: str | FlowQueue, actor: object, changes: dict[str, Any]) -> None:
    name, spine = queue_name(queue), spine_alias()
    who = attribution(actor, "", required=True).actor
    refresh(spine)  # one that is declared and that nobody has claimed in yet
    with transaction.atomic(using=spine):
        rows = QueueLimit.objects.using(spine).filter(name=name)
        if not rows.update(**changes, changed_by=who, changed_at=read_now(spine)):
            raise InvalidTransition(f"queue {name!r} has no limits; declare it as FlowQueue({name!r}, …)")
