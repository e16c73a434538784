"""Faults that show in the hints: work that is due, leased or set aside, and that nobody carries on."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from django_durable.clock import read_now
from django_durable.conf import config
from django_durable.models import DispatchHint, Execution, ExecutionQuerySet
from django_durable.models.execution import ACTIVE
from django_durable.operators.doctor.finding import ERROR, WARNING, Finding, look_at
from django_durable.operators.stats import live_hints, live_queues

__all__ = ["dangling_hints", "lapsed_leases", "overdue_work", "parked_hints"]

OVERDUE = timedelta(seconds=60)
"""How long work may be due on a queue that nobody serves."""
STARVED = timedelta(minutes=15)
"""The same on a queue where work is being done: a burst takes a while, and that is no fault."""
QUEUES_NAMED = 20
WATCHED, WATCHED_SECONDS = 20, 1.0
"""How many late hints of a queue are watched, and for how long, before it counts as not served."""


def overdue_work(using: str) -> Finding | None:
    """Ready work that nobody takes, overdue timers among it."""
    now = read_now(using)
    late = alive(live_hints(using).filter(token=None, due_at__lt=now - OVERDUE))
    queues = [queue for queue in live_queues(using) if late.filter(queue=queue).exists()]
    if not queues:
        return None
    busy = queues_worked_on(using, late, queues)
    late = late.filter(queue__in=queues).exclude(queue__in=busy, due_at__gte=now - STARVED)
    seen = look_at(late.order_by("due_at"), "execution_id")
    oldest = late.order_by("due_at").values_list("due_at", flat=True).first()
    if not seen or oldest is None:
        return None
    named = [queue for queue in queues if late.filter(queue=queue).exists()][:QUEUES_NAMED]
    return Finding(
        code="overdue",
        severity=WARNING,
        count=seen.count,
        executions=seen.executions,
        explanation=_("%(count)d execution(s) are due and nobody takes them, for up to %(age)d s, on: %(queues)s.")
        % {"count": seen.count, "age": age(now, oldest), "queues": ", ".join(named)},
        advice=_(
            "Run a worker that serves these queues and knows these workflows; if one does, it needs more concurrency."
        ),
        details={"queues": named, "oldest_seconds": age(now, oldest)},
    )


def queues_worked_on(using: str, late: QuerySet[DispatchHint], queues: list[str]) -> set[str]:
    """The queues where somebody works, or takes some of the late work while we watch.

    Between two short turns of a worker there is no lease to be seen, so one look would be wrong now and then.
    """
    oldest = {queue: late_ids(late, queue) for queue in queues}
    busy: set[str] = set()
    until = time.monotonic() + WATCHED_SECONDS
    while len(busy) < len(queues):
        for queue in set(queues) - busy:
            if is_leased(using, queue) or late.filter(pk__in=oldest[queue]).count() < len(oldest[queue]):
                busy.add(queue)
        if time.monotonic() >= until:
            break
        time.sleep(WATCHED_SECONDS / 20)
    return busy


def late_ids(late: QuerySet[DispatchHint], queue: str) -> list[UUID]:
    return list(late.filter(queue=queue).order_by("due_at").values_list("pk", flat=True)[:WATCHED])


def is_leased(using: str, queue: str) -> bool:
    ahead = live_hints(using).filter(queue=queue, token__isnull=False, due_at__gt=read_now(using))
    return ahead.exists()


def lapsed_leases(using: str) -> Finding | None:
    """Claims of dead workers that nobody has taken over, a whole lease after they ended."""
    now = read_now(using)
    until = now - timedelta(seconds=config().lease_seconds)
    lapsed = alive(live_hints(using).filter(token__isnull=False, due_at__lt=until))
    seen = look_at(lapsed.order_by("due_at"), "execution_id")
    if not seen:
        return None
    return Finding(
        code="lapsed-lease",
        severity=WARNING,
        count=seen.count,
        executions=seen.executions,
        explanation=_("%(count)d execution(s) belong to a worker that is gone, and nobody has taken them over.")
        % {"count": seen.count},
        advice=_(
            "Run a worker that serves their queues: it takes them over at once, nothing is repeated that is recorded."
        ),
    )


def parked_hints(using: str) -> Finding | None:
    """Work set aside after too many failures to reach it."""
    parked = alive(DispatchHint.objects.using(using).filter(state=DispatchHint.State.PARKED))
    seen = look_at(parked.order_by("due_at"), "execution_id")
    if not seen:
        return None
    return Finding(
        code="parked",
        severity=ERROR,
        count=seen.count,
        executions=seen.executions,
        explanation=_("%(count)d dispatch hint(s) are parked: their plane could not be resolved too many times.")
        % {"count": seen.count},
        advice=_("Mend the plane or the tenant's placement, then requeue the hints."),
    )


def dangling_hints(using: str) -> Finding | None:
    """Hints whose execution has ended or is gone: an end deletes its hints, so something else changed rows."""
    hints = DispatchHint.objects.using(using).filter(~Exists(unfinished(using)))
    seen = look_at(hints.order_by("due_at"), "execution_id")
    if not seen:
        return None
    return Finding(
        code="dangling-hint",
        severity=WARNING,
        count=seen.count,
        executions=seen.executions,
        explanation=_("%(count)d dispatch hint(s) belong to executions that have ended or do not exist.")
        % {"count": seen.count},
        advice=_(
            "A sweep drops them within minutes. If they stay, check that something ticks; ask who deleted the rows."
        ),
    )


def alive(hints: QuerySet[DispatchHint]) -> QuerySet[DispatchHint]:
    """Those of executions that have not ended; the others are one finding of their own."""
    return hints.filter(Exists(unfinished(hints.db)))


def unfinished(using: str) -> ExecutionQuerySet:
    return Execution.objects.using(using).filter(pk=OuterRef("execution_id"), status__in=ACTIVE)


def age(now: datetime, moment: datetime) -> int:
    return int((now - moment).total_seconds())
