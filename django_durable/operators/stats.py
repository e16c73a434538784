"""Stats: how much there is to do, and how long it has been waiting, in numbers that are cheap to ask for.

No number costs more than its bound: counting stops at ``MOST_COUNTED``, and the oldest ready work is one index
look-up a queue and priority, whatever the backlog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import models

from django_durable.clock import read_now
from django_durable.engine.transitions.admission import rooms_of
from django_durable.engine.transitions.hint_lease import LEVELS
from django_durable.models import (
    DeadLetter,
    DispatchHint,
    Execution,
    Outbox,
    QueueLimit,
    Schedule,
    Status,
    SweepClaim,
)
from django_durable.planes.places import Away, Place, all_places, ask
from django_durable.planes.registry import all_planes
from django_durable.planes.selection import spine_alias
from django_durable.sql import Sql, build, fetch, join

__all__ = [
    "MOST_COUNTED",
    "Measured",
    "PlaneStats",
    "QueueStats",
    "Stats",
    "count_statuses",
    "count_up_to",
    "last_tick_age",
    "live_hints",
    "live_queues",
    "measure",
]

MOST_COUNTED = 100_000
"""Where counting stops; a number that has reached it means "at least". Hints are counted for all planes together."""

TICK = "tick"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneStats:
    """One look at one plane. Ages are seconds by the spine's clock, ``None`` where there is nothing."""

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
    schedules: int
    due_schedules: int
    """Schedules with a time that is due and not decided."""
    oldest_ended_seconds: float | None
    """How long ago the oldest execution ended that is still kept: what retention has come to."""
    at_least: tuple[str, ...] = ()
    """Those of ``ready``, ``sleeping`` and ``parked`` whose counting stopped early, at whichever plane's hints.

    Where ``ready`` is one of them, a plane's ``oldest_ready_seconds`` is not known and ``None``.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """One queue with limits; ``None``: without that limit."""

    paused: bool
    concurrency: int | None
    held: int
    """Slots that are taken: live leases."""
    ready: int
    """Hints that are due and wait for the queue, ``MOST_COUNTED`` at most."""
    starts_left: int | None
    """How many may begin now within the rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats(PlaneStats):
    """One look at everything: what the spine knows of all open planes, and the sums of those that answered."""

    last_tick_seconds: float | None
    """How long ago anything last swept; ``None``: never."""
    queues: dict[str, QueueStats]
    """Queues with limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The sums, each plane's own numbers by its name, and the planes that gave no answer."""

    total: Stats
    planes: dict[str, PlaneStats]
    away: list[Away]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Hints of one kind, by the name of their plane, registered or not; ``stopped``: there are more."""

    number: Mapping[str, int]
    oldest: Mapping[str, datetime | None]
    stopped: bool

    @property
    def total(self) -> int:
        """Of all planes."""
        return sum(self.number.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """What the spine knows of the work of all planes that are not closed."""

    ready: Count
    sleeping: Count
    parked: Count
    oldest: datetime | None

    @property
    def at_least(self) -> tuple[str, ...]:
        """The kinds whose counting stopped early."""
        return tuple(kind for kind in QUEUED if getattr(self, kind).stopped)


QUEUED = ("ready", "sleeping", "parked")
SUMMED = ("running", "blocked", "unpublished", "open_dead_letters", "schedules", "due_schedules")


def measure() -> Measured:
    """Count everything, each number up to ``MOST_COUNTED``. Raises where the spine cannot be reached.

    Closed planes are left alone, with their hints.
    """
    spine = spine_alias()
    now = read_now(spine)
    queued = read_queued(spine, now)
    answers = ask([one for one in all_places() if not one.is_closed], lambda one: measure_place(one, queued, now))
    found = {place.label: stats for place, stats in answers.found}
    sums = {name: sum(getattr(one, name) for one in found.values()) for name in SUMMED}
    # Of the spine, not of the planes: a plane that nobody knows any more still has its hints there.
    sums |= {kind: getattr(queued, kind).total for kind in QUEUED}
    total = Stats(
        statuses={status: sum(one.statuses[status] for one in found.values()) for status in Status.values},
        oldest_ready_seconds=age_of(queued.oldest, now),
        oldest_ended_seconds=max(
            (one.oldest_ended_seconds for one in found.values() if one.oldest_ended_seconds is not None), default=None
        ),
        last_tick_seconds=last_tick_age(spine, now),
        queues=measure_queues(spine, now),
        at_least=queued.at_least,
        **{name: min(count, MOST_COUNTED) for name, count in sums.items()},
    )
    return Measured(total=total, planes=found, away=answers.away)


def measure_queues(spine: str, now: datetime) -> dict[str, QueueStats]:
    """The queues with limits, by name."""
    limits = QueueLimit.objects.using(spine).in_bulk(field_name="name")
    found: dict[str, QueueStats] = {}
    for room in rooms_of(spine, limits):
        due = live_hints(spine).filter(queue=room.name, priority__in=LEVELS, due_at__lte=now, token=None)
        found[room.name] = QueueStats(
            paused=limits[room.name].paused,
            concurrency=limits[room.name].concurrency,
            held=room.held,
            ready=count_up_to(due),
            starts_left=room.starts,
        )
    return found


def measure_place(place: Place, queued: Queued, now: datetime) -> PlaneStats:
    """The numbers of one plane."""
    statuses = count_statuses(place.alias)
    ready = queued.ready
    return PlaneStats(
        statuses=statuses,
        ready=ready.number.get(place.plane, 0),
        oldest_ready_seconds=None if ready.stopped else age_of(ready.oldest.get(place.plane), now),
        running=statuses["running"],
        sleeping=queued.sleeping.number.get(place.plane, 0),
        blocked=statuses["blocked"],
        parked=queued.parked.number.get(place.plane, 0),
        unpublished=count_up_to(Outbox.objects.using(place.alias).filter(pk__gt=0)),
        open_dead_letters=count_up_to(DeadLetter.objects.using(place.alias).filter(retried_at=None)),
        schedules=count_up_to(Schedule.objects.using(place.alias).filter(due_at__isnull=False)),
        due_schedules=count_up_to(undecided_schedules(place.alias)),
        oldest_ended_seconds=oldest_ended_age(place.alias),
        at_least=queued.at_least,
    )


def oldest_ended_age(using: str) -> float | None:
    """Seconds since the first of the executions that are kept has ended, by the plane's clock."""
    ended = Execution.objects.using(using).filter(finished_at__isnull=False).order_by("finished_at", "pk")
    first = ended.values_list("finished_at", flat=True).first()
    return None if first is None else (read_now(using) - first).total_seconds()


def age_of(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else (now - moment).total_seconds()


def read_queued(spine: str, now: datetime) -> Queued:
    """Count the hints, each kind in one statement for all planes together."""
    closed = [plane.name for plane in all_planes().values() if not plane.claimable]
    live, parked = live_hints(spine), DispatchHint.objects.using(spine).filter(state=DispatchHint.State.PARKED)
    if closed:
        live, parked = live.exclude(plane__in=closed), parked.exclude(plane__in=closed)
    queues = list(live_queues(spine))
    due = live.filter(queue__in=queues, priority__in=LEVELS, due_at__lte=now, token=None)
    return Queued(
        ready=by_plane(spine, due),
        sleeping=by_plane(spine, live.filter(token=None, due_at__gt=now)),
        parked=by_plane(spine, parked),
        oldest=oldest_due(live, queues, now),
    )


def by_plane(spine: str, hints: models.QuerySet[DispatchHint]) -> Count:
    """How many of these hints each plane has, and when the first of them was due; of ``MOST_COUNTED`` at most."""
    bounded = hints.order_by().values("plane", "due_at")[:MOST_COUNTED]
    try:
        text, params = bounded.query.get_compiler(spine).as_sql()
    except EmptyResultSet:  # no queue has any work
        return Count(number={}, oldest={}, stopped=False)
    counted = Sql(f"SELECT plane, COUNT(*), MIN(due_at) FROM ({text}) AS counted GROUP BY plane", tuple(params))
    rows = fetch(spine, counted)
    number = {plane: int(count) for plane, count, _oldest in rows}
    oldest = {plane: as_moment(oldest) for plane, _count, oldest in rows}
    return Count(number=number, oldest=oldest, stopped=sum(number.values()) >= MOST_COUNTED)


def as_moment(raw: object) -> datetime | None:
    """A time as PostgreSQL gives it, or SQLite."""
    moment = datetime.fromisoformat(raw) if isinstance(raw, str) else raw
    assert moment is None or isinstance(moment, datetime)
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)


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


def undecided_schedules(using: str) -> models.QuerySet[Schedule]:
    """Schedules with a time that nobody has decided."""
    return Schedule.objects.using(using).filter(due_at__lte=read_now(using), moving=False)


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


def oldest_due(live: models.QuerySet[DispatchHint], queues: list[str], now: datetime) -> datetime | None:
    """When the oldest ready of these hints fell due."""
    found: list[datetime] = []
    for queue in queues:
        for level in LEVELS:
            due = live.filter(queue=queue, priority=level, due_at__lte=now, token=None)
            found += due.order_by("due_at").values_list("due_at", flat=True)[:1]
    return min(found, default=None)


def last_tick_age(using: str, now: datetime) -> float | None:
    """Seconds since anything last ticked: beat, an embedded worker, ``manage.py durable tick``."""
    ticks = SweepClaim.objects.using(using).filter(name=TICK)
    last = ticks.order_by("-ran_at").values_list("ran_at", flat=True).first()
    return age_of(last, now)
