"""Faults of events that start one run together: nobody starts it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Q
from django.utils.translation import gettext as _

from django_durable.clock import read_now
from django_durable.models import GatheredEvent
from django_durable.operators.doctor.finding import WARNING, Finding
from django_durable.operators.doctor.scene import Scene
from django_durable.operators.stats import count_up_to
from django_durable.planes.places import Place

__all__ = ["waiting_events"]

OVERDUE = timedelta(seconds=60)
"""How long after its time a run may be started."""


def waiting_events(scene: Scene) -> Iterator[Finding]:
    """Events whose run cannot be started, or is started by nobody."""
    for place, count in scene.each(waiting_on):
        if count:
            yield Finding(
                code="waiting-events",
                severity=WARNING,
                count=count,
                plane=place.label,
                explanation=_(
                    "%(count)d event(s) of a debounced or batched subscription should have started their run."
                )
                % {"count": count},
                advice=_(
                    "Check that something ticks whose code has the workflow; the log names what could not be started"
                    " and why."
                ),
            )


def waiting_on(place: Place) -> int:
    now = read_now(place.alias)
    rows = GatheredEvent.objects.using(place.alias).filter(due_at__lte=now + OVERDUE)
    return count_up_to(rows.filter(Q(due_at__lt=now - OVERDUE) | Q(failures__gt=0)))
