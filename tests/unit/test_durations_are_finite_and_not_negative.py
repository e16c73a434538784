"""Rule 30: a duration is a finite, non-negative number of seconds or a timedelta; all else raises."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_durable.durations import MAXIMUM_SECONDS, as_timedelta, aware, seconds


class Level(IntEnum):
    TWO = 2


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0.0),
        (0.0, 0.0),
        (1e-9, 1e-9),
        (3, 3.0),
        (2.5, 2.5),
        (Level.TWO, 2.0),
        (10**9, 1e9),
        (timedelta(0), 0.0),
        (timedelta(minutes=1, milliseconds=500), 60.5),
        (MAXIMUM_SECONDS, float(MAXIMUM_SECONDS)),
    ],
)
def test_seconds_and_timedeltas_are_accepted(value: object, expected: float) -> None:
    found = seconds(value, name="delay")
    assert found == expected
    assert type(found) is float


def test_negative_zero_becomes_zero() -> None:
    assert math.copysign(1.0, seconds(-0.0, name="delay")) == 1.0


@pytest.mark.parametrize(
    "value", [True, False, "3", b"3", None, Decimal("3"), 3j, [], datetime.now(UTC), Unprintable()]
)
@pytest.mark.parametrize("convert", [seconds, as_timedelta])
def test_other_types_raise_a_type_error_that_names_the_argument(convert: object, value: object) -> None:
    with pytest.raises(TypeError, match=r"^delay must be a number of seconds .*timedelta, not ") as info:
        convert(value, name="delay")  # type: ignore[operator]
    assert type(value).__name__ in str(info.value)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (math.nan, "finite"),
        (math.inf, "finite"),
        (-math.inf, "finite"),
        (-1, "negative"),
        (-1e-9, "negative"),
        (timedelta(microseconds=-1), "negative"),
        (timedelta.min, "negative"),
        (MAXIMUM_SECONDS + 1, "at most"),
        (1e300, "at most"),
        (timedelta.max, "at most"),
        (10**400, "at most"),
        pytest.param(10**5000, "at most", id="5001 digits"),
        pytest.param(-(10**5000), "negative", id="minus 5001 digits"),
    ],
)
@pytest.mark.parametrize("convert", [seconds, as_timedelta])
def test_values_out_of_range_raise_a_value_error_that_names_the_argument(
    convert: object, value: object, told: str
) -> None:
    with pytest.raises(ValueError, match=rf"^timeout must .*{told}") as info:
        convert(value, name="timeout")  # type: ignore[operator]
    assert len(str(info.value)) < 250


def test_the_error_shows_the_value() -> None:
    with pytest.raises(ValueError, match=r"-12\.5"):
        seconds(-12.5, name="delay")
    with pytest.raises(TypeError, match=r"'soon' \(str\)"):
        seconds("soon", name="delay")


def test_a_tighter_maximum_is_kept_and_a_looser_one_cannot_lift_the_limit() -> None:
    assert seconds(60, name="delay", maximum=60) == 60.0
    with pytest.raises(ValueError, match="at most 60 seconds"):
        seconds(60.001, name="delay", maximum=60)
    with pytest.raises(ValueError, match=f"at most {MAXIMUM_SECONDS:,}"):
        seconds(MAXIMUM_SECONDS + 1, name="delay", maximum=1e300)


@given(st.one_of(st.floats(), st.integers(), st.timedeltas()))
def test_an_accepted_duration_from_now_stays_below_the_year_9999(value: float | timedelta) -> None:
    try:
        found = as_timedelta(value, name="delay")
    except ValueError:
        return
    due = datetime.now(UTC) + found
    assert due.year < 9999
    assert due.astimezone(timezone(timedelta(hours=14))).year < 9999


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(seconds=MAXIMUM_SECONDS)))
def test_a_timedelta_passes_exactly(value: timedelta) -> None:
    assert as_timedelta(value, name="delay") is value


def test_seconds_become_a_timedelta_in_microseconds() -> None:
    assert as_timedelta(1.5, name="delay") == timedelta(seconds=1, microseconds=500_000)
    assert as_timedelta(1e-9, name="delay") == timedelta(0)


def test_an_aware_datetime_passes_unchanged() -> None:
    value = datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    assert aware(value, name="until") is value


class NoOffset(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None


@pytest.mark.parametrize("value", [datetime(2030, 1, 1), datetime(2030, 1, 1, tzinfo=NoOffset())])
def test_a_naive_datetime_is_refused_with_what_to_do(value: datetime) -> None:
    with pytest.raises(ValueError, match=r"^until must be an aware datetime.*make_aware"):
        aware(value, name="until")


@pytest.mark.parametrize("value", [date(2030, 1, 1), "2030-01-01T00:00:00Z", 1.0, None, timedelta(1)])
def test_only_a_datetime_is_a_point_in_time(value: object) -> None:
    with pytest.raises(TypeError, match=r"^until must be an aware datetime, not "):
        aware(value, name="until")


@pytest.mark.parametrize(
    "value",
    [
        datetime.max.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        datetime.min.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 1, 1, tzinfo=UTC),
        datetime(9998, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))),
    ],
)
def test_a_time_that_not_every_zone_can_show_is_refused(value: datetime) -> None:
    with pytest.raises(ValueError, match=r"^until must be between the years 2 and 9998"):
        aware(value, name="until")


@given(st.datetimes(timezones=st.timezones()))
def test_an_accepted_time_can_be_shown_in_every_zone(value: datetime) -> None:
    try:
        found = aware(value, name="until")
    except ValueError:
        return
    for hours in (-14, 14):
        found.astimezone(timezone(timedelta(hours=hours)))
