"""The liveness guarantee: every execution that has not ended has a lease, a due time, or an awaited message
or operator with a sweep behind it. One query lists what violates it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from django_durable.models import DispatchHint, Execution, ExecutionQuerySet, Outbox
from django_durable.operators.doctor.finding import ERROR, Finding, look_at

__all__ = ["liveness_violations", "lost_executions", "running_without_hint"]

NEEDS_HINT = ("pending", "running", "compensating", "blocked")
CLAIMABLE = ("running", "compensating")


def liveness_violations(using: str) -> list[UUID]:
    """Every execution that nothing will ever carry on; empty on a healthy system.

    A hint counts if it is of the execution's own revision and epoch (an older one is dropped unseen), whatever
    its state: a blocked one is looked at again, a parked one awaits an operator. A paused execution awaits one too.
    """
    return list(violations(using).values_list("pk", flat=True))


def violations(using: str) -> Any:
    """Those executions, oldest first."""
    same = {"execution_id": OuterRef("pk"), "revision": OuterRef("revision"), "epoch": OuterRef("epoch"), "kind": 0}
    hints = DispatchHint.objects.using(using).filter(**same)
    on_its_way = Outbox.objects.using(using).filter(**same)
    timed = Q(wake_at__isnull=False) | Q(deadline__isnull=False)
    needs_hint = Q(status__in=NEEDS_HINT) | Q(status="waiting") & timed
    waits_for_nothing = Q(status="waiting", awaiting__in=("", "[]")) & ~timed
    rows: ExecutionQuerySet = Execution.objects.using(using).filter(status__in=(*NEEDS_HINT, "waiting"))
    return rows.filter(waits_for_nothing | needs_hint & ~Exists(hints) & ~Exists(on_its_way)).order_by("pk")


def lost_executions(using: str) -> Finding | None:
    """Nothing will carry them on: no lease, no due time, nothing awaited."""
    seen = look_at(violations(using).exclude(held()), "pk")
    if not seen:
        return None
    return Finding(
        code="liveness",
        severity=ERROR,
        count=seen.count,
        executions=seen.executions,
        explanation=_(
            "%(count)d execution(s) have no due time, no lease and await nothing: they would stay for ever."
        )
        % {"count": seen.count},
        advice=_(
            "Run `manage.py durable tick --rebuild`. It should never be needed without a lost or restored table:"
            " please report how it came about."
        ),
    )


def running_without_hint(using: str) -> Finding | None:
    """A claim without the hint that carries its lease: a crash of its worker would go unseen."""
    seen = look_at(violations(using).filter(held()), "pk")
    if not seen:
        return None
    return Finding(
        code="running-without-hint",
        severity=ERROR,
        count=seen.count,
        executions=seen.executions,
        explanation=_("%(count)d execution(s) run under a claim whose dispatch hint is gone: nobody would take over.")
        % {"count": seen.count},
        advice=_("Run `manage.py durable tick --rebuild`: a new hint falls due when the lease would have ended."),
    )


def held() -> Q:
    return Q(status__in=CLAIMABLE, lease_token__isnull=False)
