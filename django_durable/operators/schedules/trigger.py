"""trigger, backfill: start a schedule's workflow now, and for times that were not started."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

from django_durable.authoring.timing import between
from django_durable.clock import read_now
from django_durable.durations import aware
from django_durable.engine.contention import repeated
from django_durable.engine.reach import reaching
from django_durable.engine.transitions.verbs import Attribution, note
from django_durable.errors import InvalidTransition
from django_durable.models import Execution, Overlap, Schedule, ScheduleFire
from django_durable.operators.actors import attribution
from django_durable.operators.schedules.firing import Decision, record, settle, start_for
from django_durable.operators.schedules.insert import held
from django_durable.operators.schedules.rows import timing_in

__all__ = ["MOST_BACKFILLED", "backfill", "trigger"]

MOST_BACKFILLED = 1_000
"""Times of one backfill, at most."""
ONE_MICROSECOND = timedelta(microseconds=1)

Outcome = ScheduleFire.Outcome


def trigger(schedule: Schedule, *, actor: Any, reason: str = "") -> Execution[Any]:
    """Start it now, for the time that it is now. Raises ``InvalidTransition`` where it cannot be started, saying why.

    What an operator asks for happens: neither its overlap policy nor a pause is in the way. Later times see it run.
    """
    by = attribution(actor, reason, required=True)

    def attempt() -> Execution[Any]:
        with held(schedule) as found:
            using, now = schedule.using, found.now
            decision = start_for(using, found.row, now)
            if decision.execution_id is None:
                raise InvalidTransition(f"schedule {schedule.name!r} cannot be started: {decision.error}")
            record(using, found.row, now, now, decision, actor=by.actor)
            note(using, {"id": schedule.pk, "revision": found.row.revision}, now, "trigger_schedule", by)
            execution: Execution[Any] = Execution._base_manager.using(using).get(pk=decision.execution_id)
            return execution

    return repeated(schedule.using, attempt)


def backfill(
    schedule: Schedule, start: datetime, end: datetime, *, actor: Any, reason: str = ""
) -> list[ScheduleFire]:
    """Start it for each of its times from ``start`` to ``end``, both included, that was not started; their rows.

    Each time by itself: run again after an interruption, it goes on where it was.
    """
    by = attribution(actor, reason, required=True)
    times = times_of(schedule, aware(start, name="start"), aware(end, name="end"))
    using = schedule.using
    with reaching(using), held(schedule) as found:
        told = f"{by.reason}\n" if by.reason else ""
        note(
            using,
            {"id": schedule.pk, "revision": found.row.revision},
            found.now,
            "backfill_schedule",
            Attribution(by.actor, f"{told}from {start.isoformat()} to {end.isoformat()}: {len(times)} time(s)"),
        )
    for at in times:
        repeated(using, partial(_fill, schedule, at, by.actor))
    rows = ScheduleFire.objects.using(using).filter(schedule_id=schedule.pk, nominal_at__in=times)
    return list(rows.order_by("nominal_at"))


def times_of(schedule: Schedule, start: datetime, end: datetime) -> list[datetime]:
    """The times of the range. Raises ``ValueError`` for one that is turned round, lies ahead, or is too long."""
    if end < start:
        raise ValueError(f"end {end.isoformat()} is before start {start.isoformat()}")
    if end > read_now(schedule.using):
        raise ValueError(f"end {end.isoformat()} is ahead: its times will be fired when they come")
    first = start.astimezone(UTC) - ONE_MICROSECOND
    times = list(islice(between(timing_in(schedule), first, end), MOST_BACKFILLED + 1))
    if len(times) > MOST_BACKFILLED:
        raise ValueError(
            f"the schedule has more than {MOST_BACKFILLED:,} times from {start.isoformat()} to {end.isoformat()};"
            " backfill it in parts"
        )
    return times


def _fill(schedule: Schedule, at: datetime, actor: str) -> None:
    with held(schedule) as found:
        using, row = schedule.using, found.row
        known = ScheduleFire.objects.using(using).filter(schedule_id=row.pk, nominal_at=at).first()
        if known is not None and known.outcome in (Outcome.STARTED, Outcome.QUEUED):
            return
        at_once = row.overlap == Overlap.ALLOW
        decision = start_for(using, row, at) if at_once else Decision(outcome=Outcome.QUEUED)
        if known is not None and known.through_at is not None:
            _shorten(row, known)
            known = None
        if known is None:
            record(using, row, at, found.now, decision, actor=actor)
        else:
            settle(using, row, known.pk, found.now, decision, actor=actor)


def _shorten(schedule: Schedule, shared: ScheduleFire) -> None:
    """Take its first time out of a row that stands for many."""
    rest = timing_in(schedule).next(shared.nominal_at)
    mine = ScheduleFire.objects.using(schedule.using).filter(pk=shared.pk)
    if shared.through_at is not None and rest <= shared.through_at:
        mine.update(nominal_at=rest)
    else:
        mine.delete()
