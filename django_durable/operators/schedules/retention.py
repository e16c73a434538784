"""forget_fires: the record of a schedule's times is kept for a while."""

from __future__ import annotations

from datetime import timedelta

from django_durable.clock import read_now
from django_durable.models import ScheduleFire

__all__ = ["KEPT", "forget_fires"]

KEPT = timedelta(days=90)
DELETED = 1_000
"""Rows that one pass deletes, at most."""


def forget_fires(using: str) -> int:
    """Delete what was decided longer ago than ``KEPT`` and neither waits nor may still run; how many rows."""
    fires = ScheduleFire.objects.using(using)
    old = fires.filter(decided_at__lt=read_now(using) - KEPT, is_open=False)
    doomed = old.exclude(outcome=ScheduleFire.Outcome.QUEUED).order_by("decided_at").values_list("pk", flat=True)
    page = list(doomed[:DELETED])
    return fires.filter(pk__in=page).delete()[0] if page else 0
