"""Which executions of a schedule have not ended."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

from django_durable.models import Execution, Schedule, ScheduleFire
from django_durable.models.execution import ACTIVE

__all__ = ["running"]

LOOKED_AT = 1_000
"""Fires whose executions may still run and that are looked at, oldest first."""


def running(using: str, schedule: Schedule) -> list[UUID]:
    """The runs that go on, each the current one of its chain. Fires whose execution has ended are closed."""
    fires = ScheduleFire.objects.using(using).filter(schedule_id=schedule.pk, is_open=True)
    started = dict(fires.order_by("id").values_list("id", "execution_id")[:LOOKED_AT])
    if not started:
        return []
    mine = Q(pk__in=list(started.values())) | Q(chain_id__in=list(started.values()), run__gt=1)
    alive = Execution._base_manager.using(using).filter(mine, status__in=ACTIVE)
    chains = dict(alive.values_list("chain_id", "pk"))
    ended = [fire for fire, execution_id in started.items() if execution_id not in chains]
    if ended:
        fires.filter(pk__in=ended).update(is_open=False)
    return list(chains.values())
