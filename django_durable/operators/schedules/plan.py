"""Plan: which of a schedule's due times are passed over, and which one is fired next. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice, takewhile

from django_durable.conf import config
from django_durable.models import CatchUp, Schedule, ScheduleFire
from django_durable.operators.schedules.rows import due_of, timing_in

__all__ = ["LISTED", "Passed", "Plan", "grace", "plan_for"]

LISTED = 100
"""Times that were missed together and get a row each; what is before them shares one."""
GRACE_SECONDS = 60.0

Reason = ScheduleFire.Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A time that is not fired; with ``through_at`` all times from one to the other."""

    nominal_at: datetime
    through_at: datetime | None = None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one transaction decides: at most one fire, so that none of them is long."""

    passed: tuple[Passed, ...] = ()
    fire_at: datetime | None = None
    next_at: datetime
    """The first time that stays undecided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The undecided times that are due, in order; of very many the first and last of those before."""

    before: tuple[datetime, datetime] | None = None
    times: list[datetime] = field(default_factory=list)
    following: datetime


def grace() -> timedelta:
    """How late a time may be fired and still be in time: as long as nobody needs to have been away for."""
    return timedelta(seconds=max(GRACE_SECONDS, 10 * config().tick_seconds))


def plan_for(schedule: Schedule, now: datetime) -> Plan:
    """What is to be done with the first of the due times, and with those that are passed over on the way to it."""
    due = due_times(schedule, now)
    if schedule.is_paused:
        return Plan(passed=passed(due.before, due.times, Reason.PAUSED), next_at=due.following)
    late = list(takewhile(lambda at: now - due_of(schedule, at) > grace(), due.times))
    in_time = due.times[len(late) :]
    kept = made_good(schedule, late, in_time)
    dropped = late[: len(late) - len(kept)]
    chosen = [*kept, *in_time, due.following]
    missed = passed(due.before, dropped, Reason.MISSED)
    if len(chosen) == 1:
        return Plan(passed=missed, next_at=due.following)
    return Plan(passed=missed, fire_at=chosen[0], next_at=chosen[1])


def made_good(schedule: Schedule, late: list[datetime], in_time: list[datetime]) -> list[datetime]:
    """Those of the late ones that are fired after all: the last of them."""
    if schedule.catch_up == CatchUp.ALL:
        return late[-schedule.catch_up_most :]
    if schedule.catch_up == CatchUp.LATEST and not in_time:
        return late[-1:]
    return []


def passed(before: tuple[datetime, datetime] | None, times: list[datetime], reason: str) -> tuple[Passed, ...]:
    shared = [Passed(nominal_at=before[0], through_at=before[1], reason=reason)] if before else []
    return (*shared, *(Passed(nominal_at=at, reason=reason) for at in times))


def due_times(schedule: Schedule, now: datetime) -> Due:
    """The times from ``next_at`` on whose hour has come. One that is delayed by jitter delays those behind it."""
    timing, most = timing_in(schedule), max(LISTED, schedule.catch_up_most) + 1
    times = [schedule.next_at, *islice(timing.after(schedule.next_at), most)]
    before = None
    if len(times) > most and times[-1] <= now:
        times = timing.latest(now, schedule.next_at, most + 1)
        before = (schedule.next_at, times.pop(0))
    waiting = next((number for number, at in enumerate(times) if due_of(schedule, at) > now), len(times))
    following = times[waiting] if waiting < len(times) else timing.next(times[-1])
    return Due(before=before, times=times[:waiting], following=following)
