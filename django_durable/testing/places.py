"""The databases that a test may use: the spine's, and those of the planes whose alias is among its ``databases``."""

from __future__ import annotations

from uuid import UUID

from django.db import connections
from django.db.models import QuerySet
from django.test.testcases import DatabaseOperationForbidden  # type: ignore[attr-defined]

from django_durable.engine.locking import LOCKED
from django_durable.engine.standing import standing_intent
from django_durable.models import DispatchHint, Execution, Outbox
from django_durable.models.execution import ACTIVE
from django_durable.operators.doctor import liveness_violations
from django_durable.planes.selection import spine_alias
from django_durable.runtime.tick import places

__all__ = ["lost_on", "usable_databases"]


def usable_databases() -> list[str]:
    """The alias of the spine, then those of the planes that this test may use, in order.

    A ``TestCase`` names its aliases in ``databases``; what it left out is no business of this test's.
    """
    spine = spine_alias()
    planes = sorted({alias for _name, alias in places()} - {spine})
    return [spine, *(alias for alias in planes if _is_allowed(alias))]


def _is_allowed(alias: str) -> bool:
    try:
        with connections[alias].cursor():
            return True
    except DatabaseOperationForbidden:
        return False


def lost_on(using: str) -> list[UUID]:
    """The executions of one database that nothing will ever carry on, the spine being that one or another."""
    if using == spine_alias():
        return liveness_violations(using)
    rows = Execution._base_manager.using(using).filter(status__in=ACTIVE).order_by("pk")
    return [row["id"] for row in rows.values(*LOCKED) if row["status"] != "paused" and _is_lost(using, row)]


def _is_lost(using: str, row: dict[str, object]) -> bool:
    """Whether its state stands for an intent that is neither on the spine nor on its way, or for none at all."""
    if standing_intent(using, row) is None:
        return row["awaiting"] in ("", "[]")
    same = {"execution_id": row["id"], "revision": row["revision"], "epoch": row["epoch"]}
    stored: list[QuerySet[DispatchHint] | QuerySet[Outbox]] = [
        DispatchHint.objects.using(spine_alias()),
        Outbox.objects.using(using),
    ]
    return not any(rows.filter(**same).exists() for rows in stored)
