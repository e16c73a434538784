"""Faults in what the engine stands on: executions without code, the way to the spine, the tick, the server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.db import connections
from django.utils.translation import gettext as _

from django_durable.clock import read_now
from django_durable.conf import config
from django_durable.models import Execution, Outbox
from django_durable.models.execution import ACTIVE
from django_durable.operators.doctor.finding import ERROR, WARNING, Finding, Seen, look_at
from django_durable.operators.doctor.scene import Scene
from django_durable.operators.stats import last_tick_age, live_hints
from django_durable.planes.places import Place
from django_durable.sql import Sql, fetch, is_postgres

__all__ = ["blocked_executions", "missing_tick", "old_snapshot", "stranded_outbox"]

STRANDED = timedelta(seconds=60)
"""How long an intent may be on its way to the spine."""
SILENCE_SECONDS = 60.0
"""How long nothing may tick while there is work; ten ticks where TICK_SECONDS is longer."""
SNAPSHOT_SECONDS = 600.0
"""How old another session's transaction may be."""


def blocked_executions(scene: Scene) -> Iterator[Finding]:
    """Executions that the deployed code cannot go on with."""
    for place, seen in scene.each(blocked_on):
        if seen:
            yield Finding(
                code="blocked",
                severity=WARNING,
                count=seen.count,
                plane=place.label,
                executions=seen.executions,
                explanation=_(
                    "%(count)d execution(s) are blocked: their workflow or version is not deployed, or the code does"
                    " not match their history."
                )
                % {"count": seen.count},
                advice=_(
                    "`manage.py durable show ID` gives the reason. Deploy the code that fits; workers look again by"
                    " themselves."
                ),
            )


def blocked_on(place: Place) -> Seen:
    return look_at(Execution.objects.using(place.alias).filter(status="blocked").order_by("pk"), "pk")


def stranded_outbox(scene: Scene) -> Iterator[Finding]:
    """Intents that a plane has committed and that have not reached the spine."""
    for place, seen in scene.each(stranded_on):
        if seen:
            yield Finding(
                code="stranded-outbox",
                severity=ERROR,
                count=seen.count,
                plane=place.label,
                executions=seen.executions,
                explanation=_("%(count)d intent(s) in the outbox have not reached the spine for over %(limit)d s.")
                % {"count": seen.count, "limit": STRANDED.total_seconds()},
                advice=_(
                    "Check that the spine's database can be reached and that something ticks: a worker or beat."
                ),
            )


def stranded_on(place: Place) -> Seen:
    until = read_now(place.alias) - STRANDED
    rows = Outbox.objects.using(place.alias).filter(created_at__lt=until)
    return look_at(rows.order_by("pk"), "execution_id")


def missing_tick(scene: Scene) -> Iterator[Finding]:
    """There is work, and neither a worker nor beat sweeps: what a crash leaves behind would stay."""
    if not live_hints(scene.spine).exists():
        return
    limit = max(SILENCE_SECONDS, 10 * config().tick_seconds)
    silence = silent_seconds(scene)
    if silence <= limit:
        return
    yield Finding(
        code="no-tick",
        severity=ERROR,
        count=1,
        plane=scene.own.label,
        explanation=_("There is work, and nothing has ticked for %(age)d s.") % {"age": silence},
        advice=_("Run `manage.py durable worker`, or Celery's beat with the entry of `django_durable.celery.setup`."),
        details={"seconds": int(silence)},
    )


def silent_seconds(scene: Scene) -> float:
    """Since the last tick; where there never was one, since the oldest work was accepted."""
    last = last_tick_age(scene.spine, read_now(scene.spine))
    if last is not None:
        return last
    return max((age for _place, age in scene.each(age_of_work)), default=0.0)


def age_of_work(place: Place) -> float:
    active = Execution.objects.using(place.alias).filter(status__in=ACTIVE).order_by("pk")
    accepted = active.values_list("created_at", flat=True).first()
    return 0.0 if accepted is None else (read_now(place.alias) - accepted).total_seconds()


def old_snapshot(scene: Scene) -> Iterator[Finding]:
    """A transaction left open elsewhere: PostgreSQL keeps every dead row since, and claims get slower and slower."""
    for place, sessions in scene.each(old_sessions):
        if sessions:
            pid, age = sessions[0]
            yield Finding(
                code="old-snapshot",
                severity=WARNING,
                count=len(sessions),
                plane=place.label,
                explanation=_(
                    "%(count)d session(s) have had a transaction open for up to %(age)d s (oldest: process %(pid)d):"
                    " dead rows pile up and claims get slower."
                )
                % {"count": len(sessions), "age": age, "pid": pid},
                advice=_(
                    "Find it in pg_stat_activity and end it; set idle_in_transaction_session_timeout, keep reports"
                    " short or on a replica."
                ),
                details={"pid": pid, "seconds": int(age)},
            )


def old_sessions(place: Place) -> list[tuple[int, float]]:
    """The process and the age of each, the oldest first."""
    if not is_postgres(connections[place.alias]):
        return []
    statement = Sql(
        "SELECT pid, extract(epoch FROM clock_timestamp() - xact_start)::float8 AS age FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
        " AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)"
        " AND clock_timestamp() - xact_start > %s * interval '1 second' ORDER BY xact_start LIMIT 100",
        (SNAPSHOT_SECONDS,),
    )
    return [(pid, age) for pid, age in fetch(place.alias, statement)]
