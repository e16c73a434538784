"""Cron schedules keep local time: a time in a gap fires once after it, a repeated hour once. Over real zones."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from django_durable.authoring.timing import Timing, between, timing_of
from tests.flow.wall_clock import daily

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
ALL = frozenset(range(7))
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour
    "Asia/Kolkata",  # never
    "America/Sao_Paulo",  # a gap at midnight, until 2018
    "America/Havana",  # at midnight, and midnight itself comes twice
    "Africa/Casablanca",  # four changes a year
    "Asia/Gaza",
    "Pacific/Auckland",
    "America/Santiago",
]


def cron(expression: str, zone: str) -> Timing:
    return timing_of(cron=expression, every=None, timezone=zone, anchor=EPOCH)


def local(timing: Timing, since: str, count: int) -> list[str]:
    zone = ZoneInfo(timing.timezone)
    found = islice(timing.after(datetime.fromisoformat(since).replace(tzinfo=UTC)), count)
    return [moment.astimezone(zone).isoformat(timespec="minutes") for moment in found]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("at", [time(0, 0), time(1, 30), time(2, 0), time(2, 15), time(2, 59), time(3, 0)])
@pytest.mark.parametrize("year", [2017, 2026])
def test_each_local_time_happens_once(zone: str, at: time, year: int) -> None:
    since, until = datetime(year, 2, 1, tzinfo=UTC), datetime(year + 1, 2, 1, tzinfo=UTC)
    timing = cron(f"{at.minute} {at.hour} * * *", zone)
    found = list(between(timing, since, until))
    assert found == daily(zone, at, since, until, ALL)
    assert len(found) in (365, 366)


@pytest.mark.parametrize(
    ("zone", "expression", "since", "expected"),
    [
        ("Europe/Berlin", "30 2 * * *", "2027-03-27T12:00", ["2027-03-28T03:00+02:00", "2027-03-29T02:30+02:00"]),
        ("Europe/Berlin", "30 2 * * *", "2027-10-30T12:00", ["2027-10-31T02:30+02:00", "2027-11-01T02:30+01:00"]),
        # From between the two: it has happened.
        ("Europe/Berlin", "30 2 * * *", "2027-10-31T00:45", ["2027-11-01T02:30+01:00"]),
        ("Europe/Berlin", "30 2 * * *", "2027-10-31T01:15", ["2027-11-01T02:30+01:00"]),
        # Several times in the gap are one.
        ("Europe/Berlin", "*/20 2 * * *", "2027-03-27T12:00", ["2027-03-28T03:00+02:00", "2027-03-29T02:00+02:00"]),
        ("Europe/Berlin", "0 2,3 * * *", "2027-03-27T12:00", ["2027-03-28T03:00+02:00", "2027-03-29T02:00+02:00"]),
        ("Europe/Berlin", "0 * * * *", "2027-10-30T23:30", ["2027-10-31T02:00+02:00", "2027-10-31T03:00+01:00"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00", ["2026-10-04T02:30+11:00"]),
        (
            "Australia/Lord_Howe",
            "45 1 * * *",
            "2027-04-03T00:00",
            ["2027-04-04T01:45+11:00", "2027-04-05T01:45+10:30"],
        ),
        ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00", ["2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00"]),
        ("America/Havana", "0 0 * * *", "2026-10-31T12:00", ["2026-11-01T00:00-04:00", "2026-11-02T00:00-05:00"]),
        ("Pacific/Apia", "0 9 30 12 *", "2011-12-01T00:00", ["2011-12-31T00:00+14:00", "2012-12-30T09:00+14:00"]),
        ("Asia/Kolkata", "30 5 * * *", "2027-03-27T12:00", ["2027-03-28T05:30+05:30"]),
    ],
)
def test_times_around_a_change_of_the_clocks(zone: str, expression: str, since: str, expected: list[str]) -> None:
    assert local(cron(expression, zone), since, len(expected)) == expected


def test_the_times_are_in_order_and_none_comes_twice() -> None:
    for zone in ZONES:
        times = list(islice(cron("*/30 * * * *", zone).after(datetime(2026, 3, 1, tzinfo=UTC)), 18_000))
        assert all(one < later for one, later in zip(times, times[1:], strict=False))


def test_where_it_begins_makes_no_difference() -> None:
    timing = cron("*/7 1-3 * * *", "Europe/Berlin")
    start, end = datetime(2027, 10, 30, 20, tzinfo=UTC), datetime(2027, 10, 31, 6, tzinfo=UTC)
    times = list(between(timing, start, end))
    moment = start
    while moment < end:
        assert timing.next(moment) == next((at for at in times if at > moment), timing.next(end))
        moment += timedelta(seconds=293)


def test_an_interval_counts_real_seconds() -> None:
    timing = timing_of(cron=None, every=timedelta(hours=7), timezone=None, anchor=EPOCH)
    times = list(islice(timing.after(datetime(2027, 3, 27, tzinfo=UTC)), 50))
    assert {later - one for one, later in zip(times, times[1:], strict=False)} == {timedelta(hours=7)}
    assert all((at - EPOCH) % timedelta(hours=7) == timedelta() for at in times)


def test_the_latest_times_are_found_however_rare_they_are() -> None:
    rare, now = cron("0 0 29 2 *", "UTC"), datetime(2027, 6, 1, tzinfo=UTC)
    assert rare.latest(now, EPOCH, 3) == [datetime(year, 2, 29, tzinfo=UTC) for year in (2016, 2020, 2024)]
    often = cron("* * * * *", "UTC")
    assert often.latest(now, EPOCH, 3) == [now - timedelta(minutes=n) for n in (2, 1, 0)]
    assert often.latest(now, now - timedelta(minutes=1), 3) == [now]
