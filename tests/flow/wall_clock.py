"""When the clocks of a zone show a local time: told from the zone's offsets minute by minute, apart from the code."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def days(first: date, last: date) -> Iterator[date]:
    while first <= last:
        yield first
        first += timedelta(days=1)


def shown_at(zone: str, day: date, at: time) -> datetime:
    """The first minute in which the clocks show this time, or, where they never do, a later one."""
    clocks = ZoneInfo(zone)
    moment = datetime.combine(day, at, tzinfo=UTC) - timedelta(hours=26)
    wanted = datetime.combine(day, at)
    while moment.astimezone(clocks).replace(tzinfo=None) < wanted - 4 * HOUR:
        moment += HOUR
    while moment.astimezone(clocks).replace(tzinfo=None) < wanted:
        moment += MINUTE
    return moment


def daily(zone: str, at: time, since: datetime, until: datetime, weekdays: frozenset[int]) -> list[datetime]:
    """The times of a cron expression for these weekdays (Monday is 0) after ``since``, up to ``until``."""
    first, last = since.date() - timedelta(days=1), until.date() + timedelta(days=1)
    found = {shown_at(zone, day, at) for day in days(first, last) if day.weekday() in weekdays}
    return sorted(moment for moment in found if since < moment <= until)
