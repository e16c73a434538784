"""Stats: how much there is to do, and how long it has been waiting, in numbers that are cheap to ask for.

No number costs more than its bound: counting stops at ``MOST_COUNTED``, and the oldest ready work is one index
look-up a queue and priority, whatever the backlog.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import models

from django_durable.clock import read_now
from django_durable.engine.transitions.claim import LEVELS
from django_durable.models import DeadLetter, DispatchHint, Execution, Outbox, Status, SweepClaim
from django_durable.sql import Sql, build, fetch, join

__all__ = ["MOST_COUNTED", "Stats", "count_up_to", "last_tick_age", "live_hints", "live_queues", "measure"]

MOST_COUNTED = 100_000
"""Where counting stops; a number that has reached it means "at least"."""

TICK = "tick"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """One look at one database. Ages are seconds by the database's clock, ``None`` where there is nothing."""

    statuses: dict[str, int]
    """Executions by status, all twelve."""
    ready: int
    """Executions that are due and that nobody has taken: the backlog."""
    oldest_ready_seconds: float | None
    """How long the oldest of them has been due."""
    running: int
    """Executions under a worker's claim."""
    sleeping: int
    """Executions with a due time ahead: timers, retry delays, timeouts of waits."""
    blocked: int
    parked: int
    """Hints whose plane could not be resolved; an operator requeues them."""
    unpublished: int
    """Outbox rows on their way to the spine."""
    open_dead_letters: int
    last_tick_seconds: float | None
    """How long ago anything last swept; ``None``: never."""


def measure(using: str) -> Stats:
    """Count everything, each number up to ``MOST_COUNTED``."""
    now = read_now(using)
    statuses = count_statuses(using)
    queues = list(live_queues(using))
    oldest = oldest_due(using, queues, now)
    ready = live_hints(using).filter(queue__in=queues, priority__in=LEVELS, due_at__lte=now, token=None)
    parked = DispatchHint.objects.using(using).filter(state=DispatchHint.State.PARKED)
    return Stats(
        statuses=statuses,
        ready=count_up_to(ready),
        oldest_ready_seconds=None if oldest is None else (now - oldest).total_seconds(),
        running=statuses["running"],
        sleeping=count_up_to(live_hints(using).filter(token=None, due_at__gt=now)),
        blocked=statuses["blocked"],
        parked=count_up_to(parked),
        unpublished=count_up_to(Outbox.objects.using(using).filter(pk__gt=0)),
        open_dead_letters=count_up_to(DeadLetter.objects.using(using).filter(retried_at=None)),
        last_tick_seconds=last_tick_age(using, now),
    )


def count_statuses(using: str) -> dict[str, int]:
    """Executions by status: one statement, one bounded range of the index on status for each."""
    table = Execution._meta.db_table
    counts = [
        build(
            f"(SELECT COUNT(*) FROM (SELECT 1 FROM {table} WHERE status = {{status}} LIMIT {MOST_COUNTED})"
            f" AS counted_{number})",
            status=Sql("%s", (status,)),
        )
        for number, status in enumerate(Status.values)
    ]
    row = fetch(using, build("SELECT {counts}", counts=join(", ", counts)))[0]
    return dict(zip(Status.values, map(int, row), strict=True))


def count_up_to(rows: models.QuerySet[Any, Any], most: int = MOST_COUNTED) -> int:
    """How many rows there are, without looking at more than ``most`` of them."""
    return rows.order_by().values("pk")[:most].count()


def live_hints(using: str) -> models.QuerySet[DispatchHint]:
    """Work that is due, sleeping or leased; not what is blocked or parked."""
    return DispatchHint.objects.using(using).filter(state=DispatchHint.State.LIVE)


def live_queues(using: str) -> Iterator[str]:
    """Every queue that has work: one index look-up each, whatever the backlog."""
    name = ""
    while True:
        later = live_hints(using).filter(queue__gt=name)
        following = later.order_by("queue").values_list("queue", flat=True).first()
        if following is None:
            return
        name = following
        yield name


def oldest_due(using: str, queues: list[str], now: datetime) -> datetime | None:
    """When the oldest ready work fell due."""
    found: list[datetime] = []
    for queue in queues:
        for level in LEVELS:
            due = live_hints(using).filter(queue=queue, priority=level, due_at__lte=now, token=None)
            found += due.order_by("due_at").values_list("due_at", flat=True)[:1]
    return min(found, default=None)


def last_tick_age(using: str, now: datetime) -> float | None:
    """Seconds since anything last ticked: beat, an embedded worker, ``manage.py durable tick``."""
    ticks = SweepClaim.objects.using(using).filter(name=TICK)
    last = ticks.order_by("-ran_at").values_list("ran_at", flat=True).first()
    return None if last is None else (now - last).total_seconds()
