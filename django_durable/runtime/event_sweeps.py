"""The sweeps of events: what a publisher could not finish, what is too old, who waits no more. No user code."""

from __future__ import annotations

from django_durable.engine.events import forget_old_events, tell_waiters, untold
from django_durable.models import EventWait, Execution
from django_durable.models.execution import TERMINAL
from django_durable.quiet import report

EVENTS = 50
"""Events whose waiters one pass looks for."""

ENDED = 1_000
"""Registrations that one pass looks at."""

_looked_at: dict[str, int] = {}


def tell_of_events(plane: str) -> int:
    """Those who wait for events whose publisher died after its commit, or found too many of them, are woken."""
    told = 0
    for event_id in untold(plane, EVENTS):
        try:
            told += tell_waiters(plane, event_id)
        except Exception as error:
            report(error, "those who wait for event %s could not be told", event_id)
    return told


def forget_events(plane: str) -> int:
    """Events past EVENT_RETENTION are deleted, with their receipts."""
    return forget_old_events(plane)


def drop_ended_waits(plane: str) -> int:
    """Registrations of executions that have ended, or are gone, are deleted: a stretch of the table a pass."""
    rows = EventWait.objects.using(plane).filter(pk__gt=_looked_at.get(plane, 0)).order_by("pk")
    page = list(rows.values_list("pk", "execution_id")[:ENDED])
    _looked_at[plane] = page[-1][0] if len(page) == ENDED else 0
    owners = {execution_id for _key, execution_id in page}
    alive = Execution._base_manager.using(plane).filter(pk__in=owners).exclude(status__in=TERMINAL)
    ended = owners - set(alive.values_list("pk", flat=True))
    doomed = [key for key, execution_id in page if execution_id in ended]
    return EventWait.objects.using(plane).filter(pk__in=doomed).delete()[0] if doomed else 0
