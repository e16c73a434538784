"""Schedules whose times nobody decides, that could not start, and that no code declares any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from django_durable.clock import read_now
from django_durable.conf import config
from django_durable.models import Schedule, ScheduleFire
from django_durable.operators.doctor.finding import ERROR, INFO, LISTED, WARNING, Finding
from django_durable.operators.doctor.scene import Scene
from django_durable.operators.doctor.surroundings import SILENCE_SECONDS
from django_durable.operators.schedules.declaring import is_mine
from django_durable.planes.places import Place

__all__ = ["failing_schedules", "overdue_schedules", "undeclared_schedules"]


def overdue_schedules(scene: Scene) -> Iterator[Finding]:
    """Times have come, and nothing has decided what becomes of them: nothing ticks, or not with this code."""
    for place, names in named(scene, lambda one: map(str, filter(is_mine, late_on(one)))):
        yield Finding(
            code="overdue-schedule",
            severity=ERROR,
            count=len(names),
            plane=place.label,
            explanation=_(
                "%(count)d schedule(s) have a time that was due over %(limit)d s ago and that nobody decided."
            )
            % {"count": len(names), "limit": late_after().total_seconds()},
            advice=_("Run a worker or beat: what ticks fires schedules. Missed times follow their `catch_up`."),
            details={"schedules": names[:LISTED]},
        )


def failing_schedules(scene: Scene) -> Iterator[Finding]:
    """Schedules whose last time could not be started."""
    for place, names in named(scene, failed_on):
        yield Finding(
            code="failing-schedule",
            severity=WARNING,
            count=len(names),
            plane=place.label,
            explanation=_("%(count)d schedule(s) could not start their workflow at their last time.")
            % {"count": len(names)},
            advice=_(
                "`manage.py durable schedules fires NAME` gives the reason; mend it, then `schedules backfill NAME`."
            ),
            details={"schedules": names[:LISTED]},
        )


def undeclared_schedules(scene: Scene) -> Iterator[Finding]:
    """Schedules of code that does not declare them any more: they are not fired."""
    for place, names in named(scene, undeclared_on):
        yield Finding(
            code="undeclared-schedule",
            severity=INFO,
            count=len(names),
            plane=place.label,
            explanation=_("%(count)d schedule(s) were made by a declaration that this code does not have.")
            % {"count": len(names)},
            advice=_("If no other deployment has it, `manage.py durable schedules remove NAME`."),
            details={"schedules": names[:LISTED]},
        )


def named(scene: Scene, question: Callable[[Place], Iterable[str]]) -> Iterator[tuple[Place, list[str]]]:
    for place, names in scene.each(lambda one: sorted(question(one))):
        if names:
            yield place, names


def late_after() -> timedelta:
    """As long as nothing may tick, and as long again: a time whose workflow is unknown here is left to others."""
    return timedelta(seconds=2 * max(SILENCE_SECONDS, 10 * config().tick_seconds))


def late_on(place: Place) -> QuerySet[Schedule]:
    return Schedule.objects.using(place.alias).filter(due_at__lt=read_now(place.alias) - late_after(), moving=False)


def failed_on(place: Place) -> Iterable[str]:
    failed = Schedule.objects.using(place.alias).filter(last_outcome=ScheduleFire.Outcome.FAILED)
    return list(failed.values_list("name", flat=True))


def undeclared_on(place: Place) -> Iterable[str]:
    rows = Schedule.objects.using(place.alias).exclude(declared="")
    return [row.name for row in rows if not is_mine(row)]
