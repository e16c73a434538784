"""Timing: the nominal times of a schedule. Pure: no clock, no database.

A cron expression is read on the wall clock of its zone. Each local time that it names happens once: one in the gap of
a change of the clocks right after the gap, one in an hour that is repeated the first time. So ``0 2 * * *`` is two
o'clock all year. An interval is counted from an anchor in real seconds, whatever the clocks on the wall do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from django.conf import settings

from django_durable.durations import seconds

__all__ = ["SHORTEST", "Timing", "timing_of"]

SHORTEST = 1.0
"""Seconds between two times of an interval, at least: what ticks does so about once a second."""
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
SPANS = tuple(timedelta(days=days) for days in (1 / 24, 1, 32, 366, 4 * 366, 50 * 366))
"""How far back the latest times are looked for, shortest first."""
ONE_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Either ``cron`` in ``timezone``, or ``every`` so many seconds from ``anchor`` on."""

    cron: str = ""
    timezone: str = ""
    every: float | None = None
    anchor: datetime

    def after(self, moment: datetime) -> Iterator[datetime]:
        """The times later than this one, in order, in UTC."""
        return self._intervals(moment) if self.every is not None else self._local_times(moment)

    def next(self, moment: datetime) -> datetime:
        """The first time later than this one; far ahead where there is none any more."""
        return next(self.after(moment), LATEST)

    def latest(self, until: datetime, since: datetime, most: int) -> list[datetime]:
        """The last so many times up to ``until``, it included, and later than ``since``."""
        for span in SPANS:
            start = max(since, until - span)
            found = [*between(self, start, until)]
            if len(found) >= most or start == since:
                break
        return found[-most:]

    def _intervals(self, moment: datetime) -> Iterator[datetime]:
        assert self.every is not None
        step = timedelta(seconds=self.every)
        number = (moment - self.anchor) // step + 1
        while True:
            try:
                at = self.anchor + number * step
            except OverflowError:
                return
            yield at
            number += 1

    def _local_times(self, moment: datetime) -> Iterator[datetime]:
        zone = ZoneInfo(self.timezone)
        local = moment.astimezone(zone).replace(tzinfo=None, fold=0)
        last = moment
        try:
            for wall in CronSim(self.cron, local):
                at = happens(wall, zone)
                # Not later: of a repeated hour this was the first time, or the gap has brought several together.
                if at > last:
                    yield at
                    last = at
        except (OverflowError, ValueError):  # the end of the calendar
            return


def between(timing: Timing, start: datetime, until: datetime) -> Iterator[datetime]:
    """The times later than ``start`` up to ``until``, it included."""
    for at in timing.after(start):
        if at > until:
            return
        yield at


def happens(wall: datetime, zone: ZoneInfo) -> datetime:
    """When the clocks of a zone show this local time for the first time, or pass over it; in UTC."""
    at = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None, fold=0) == wall:
        return at
    # In a gap: read with the offset from before it, it lies behind it; with the one from after it, before it.
    before, behind = wall.replace(tzinfo=zone, fold=1).astimezone(UTC), at
    offset = before.astimezone(zone).utcoffset()
    while behind - before > ONE_SECOND:
        middle = before + timedelta(seconds=int((behind - before).total_seconds()) // 2)
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            behind = middle
    return behind


def timing_of(*, cron: object, every: object, timezone: object, anchor: datetime) -> Timing:
    """What a declaration or an operator asks for. Raises ``ValueError``, ``TypeError`` naming the argument.

    Without ``timezone`` a cron expression is read in the project's ``TIME_ZONE``.
    """
    if (cron is None) is (every is None):
        raise ValueError("a schedule takes one of cron=… and every=…")
    if every is not None:
        if timezone is not None:
            raise ValueError("timezone belongs to cron=…; every=… is counted in real seconds in all of them")
        length = seconds(every, name="every")
        if length < SHORTEST:
            raise ValueError(f"every must be at least {SHORTEST:g} second, but is {length:g}")
        return Timing(every=length, anchor=anchor)
    timing = Timing(cron=checked_cron(cron), timezone=checked_zone(timezone), anchor=anchor)
    if not list(islice(timing.after(anchor), 1)):
        raise ValueError(f"cron {cron!r} names a time that never comes")
    return timing


def checked_cron(cron: object) -> str:
    """The expression itself, its white space made single."""
    if not isinstance(cron, str):
        raise TypeError(f"cron must be a str like '0 2 * * *', not {type(cron).__name__}")
    text = " ".join(cron.split())
    try:
        CronSim(text, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(
            f"cron {cron!r} cannot be read ({error}); write minute, hour, day of month, month and day of week,"
            " like '30 2 * * MON-FRI'"
        ) from None
    if len(text) > 255:
        raise ValueError("cron must have at most 255 characters")
    return text


def checked_zone(timezone: object) -> str:
    """The key of a zone that exists here."""
    key = settings.TIME_ZONE if timezone is None else timezone
    if isinstance(key, ZoneInfo):
        key = key.key
    if not isinstance(key, str):
        raise TypeError(f"timezone must be a key like 'Europe/Berlin', not {type(key).__name__}")
    try:
        return ZoneInfo(key).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"timezone {key!r} is not known here; write a key like 'Europe/Berlin' (the package tzdata brings them"
            " where the system has none)"
        ) from None
