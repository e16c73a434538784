"""The sweeps of schedules: rows for what the code declares, times that are due, fires that wait. No user code."""

from __future__ import annotations

from uuid import UUID

from django.db import DatabaseError, InterfaceError
from django.db.models import QuerySet

from django_durable.clock import read_now
from django_durable.database_errors import is_disconnect
from django_durable.models import Schedule, ScheduleFire
from django_durable.operators.schedules.declaring import declare_all, is_mine, may_be_fired
from django_durable.operators.schedules.firing import fire_next, start_queued
from django_durable.operators.schedules.retention import forget_fires
from django_durable.quiet import report

__all__ = ["fire_due", "fire_schedules", "forget_fires"]

FIRES = 200
"""Times that one pass decides on a plane, at most."""

PAGE = 200
"""Schedules that are read at a time."""

_looked_at: dict[str, UUID] = {}


def fire_schedules(plane: str) -> int:
    """Decide the times that are due, start what was queued, and store what the code declares; how many started.

    Decided first: a declaration that has changed finds nothing undecided that the old one had due.
    """
    fired = fire_due(plane)
    declare_all(plane)
    return fired


def fire_due(plane: str) -> int:
    """Decide the times that are due, and start what was queued; how many of both."""
    return decide_due(plane) + start_waiting(plane)


def decide_due(plane: str) -> int:
    """The times that are due, those first that have been due for longest; each schedule by itself."""
    decided = 0
    after = None
    while decided < FIRES:
        rows = due_schedules(plane)
        if after is not None:
            rows = rows.filter(due_at__gte=after[0]).exclude(due_at=after[0], pk__lte=after[1])
        page = list(rows.order_by("due_at", "pk")[:PAGE])
        for schedule in filter(is_mine, page):
            decided += decide(plane, schedule, FIRES - decided)
        if len(page) < PAGE:
            break
        after = page[-1].due_at, page[-1].pk
    return decided


def due_schedules(plane: str) -> QuerySet[Schedule]:
    """Schedules with a time that is due and that this process may fire."""
    return Schedule.objects.using(plane).filter(may_be_fired(), due_at__lte=read_now(plane), moving=False)


def decide(plane: str, schedule: Schedule, most: int) -> int:
    """One schedule's due times; how many transactions that took. An error stays with its schedule."""
    decided = 0
    try:
        while decided < most and fire_next(plane, schedule):
            decided += 1
            schedule.refresh_from_db(using=plane)
    except (DatabaseError, InterfaceError) as error:
        if is_disconnect(error):
            raise
        report(error, "schedule %s could not be fired", schedule.pk)
    except Exception as error:
        report(error, "schedule %s could not be fired", schedule.pk)
    return decided


def start_waiting(plane: str) -> int:
    """Queued fires whose turn has come: a page of schedules a pass, each of which starts one at most."""
    queued = ScheduleFire.objects.using(plane).filter(outcome=ScheduleFire.Outcome.QUEUED)
    rows = Schedule.objects.using(plane).filter(pk__in=queued.values("schedule_id"), moving=False)
    after = _looked_at.get(plane)
    page = list((rows if after is None else rows.filter(pk__gt=after)).order_by("pk")[:PAGE])
    _looked_at.pop(plane, None)
    if len(page) == PAGE:
        _looked_at[plane] = page[-1].pk
    started = 0
    for schedule in page:
        try:
            started += start_queued(plane, schedule)
        except (DatabaseError, InterfaceError) as error:
            if is_disconnect(error):
                raise
            report(error, "a queued fire of schedule %s could not be started", schedule.pk)
        except Exception as error:
            report(error, "a queued fire of schedule %s could not be started", schedule.pk)
    return started
