"""Dates, times and durations, with zone and fold, to JSON and back.

``datetime`` and ``time`` are an ISO string where that says everything (naive, UTC, an unnamed offset), else an
object: ``{"at": "2024-10-27T02:30:00", "zone": "Europe/Berlin", "fold": 1}``. ``timezone.utc`` and
``ZoneInfo("UTC")`` stay apart, so does a named offset (``timezone(timedelta(hours=1), "CET")``).

Other tzinfo classes are refused: storing their offset only would give back another type, and a zone of theirs
may have more than one offset. ``value.astimezone(datetime.UTC)`` makes such a value storable.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

from django_durable.payloads.refusal import Refusal
from django_durable.payloads.scalars import whole, write_str

Moment = TypeVar("Moment", datetime, time)

ADVICE: Final = "use a ZoneInfo with a key or a datetime.timezone, for example value.astimezone(datetime.UTC)"


def write_timedelta(value: timedelta) -> list[int]:
    """``[days, seconds, microseconds]``."""
    return [value.days, value.seconds, value.microseconds]


def read_timedelta(payload: Any) -> timedelta:
    """The duration of ``[days, seconds, microseconds]``."""
    days, seconds, microseconds = payload
    return timedelta(whole(days), whole(seconds), whole(microseconds))


def write_moment(value: datetime | time) -> str | dict[str, Any]:
    """A datetime or time of exactly that class; ``Refusal`` for a zone that could not be read back."""
    zone = value.tzinfo
    if not value.fold and (zone is None or zone is UTC or is_bare_offset(zone)):
        return value.isoformat()
    record: dict[str, Any] = {"at": value.replace(tzinfo=None, fold=0).isoformat()}
    if value.fold:
        record["fold"] = 1
    if zone is not None:
        write_zone(zone, record)
    return record


def read_datetime(payload: Any) -> datetime:
    """What ``write_moment`` wrote for a datetime."""
    return read_moment(datetime.fromisoformat, payload)


def read_time(payload: Any) -> time:
    """What ``write_moment`` wrote for a time."""
    return read_moment(time.fromisoformat, payload)


def read_date(payload: Any) -> date:
    """A date from its ISO text."""
    return date.fromisoformat(payload)


def read_moment(parse: Callable[[str], Moment], payload: Any) -> Moment:
    if isinstance(payload, str):
        return parse(payload)
    return parse(payload["at"]).replace(tzinfo=read_zone(payload), fold=whole(payload.get("fold", 0)))


def is_bare_offset(zone: tzinfo) -> bool:
    """Whether the ISO text says everything about this zone. Python reads offsets below a second as UTC there."""
    if type(zone) is not timezone:
        return False
    offset, *name = arguments_of(zone)
    return not name and not offset.microseconds


def arguments_of(zone: timezone) -> tuple[timedelta] | tuple[timedelta, str]:
    """What the zone was made with; only this tells an explicit name from the computed one."""
    arguments: tuple[timedelta] | tuple[timedelta, str] = zone.__getinitargs__()  # type: ignore[attr-defined]
    return arguments


def write_zone(zone: tzinfo, record: dict[str, Any]) -> None:
    if type(zone) is ZoneInfo:
        record["zone"] = known_key(zone)
    elif type(zone) is timezone:
        offset, *name = arguments_of(zone)
        record["offset"] = write_timedelta(offset)
        if name:
            record["name"] = write_str(name[0])
    else:
        raise Refusal(f"has a zone of class {type(zone).__module__}.{type(zone).__qualname__}; {ADVICE}")


def known_key(zone: ZoneInfo) -> str:
    """The key, if this machine has a zone under it: one made from a file may carry none, or any."""
    try:
        ZoneInfo(zone.key)
    except Exception:
        raise Refusal(f"has a ZoneInfo whose key names no zone of this machine; {ADVICE}") from None
    return zone.key


def read_zone(record: dict[str, Any]) -> tzinfo | None:
    if "zone" in record:
        return ZoneInfo(record["zone"])
    if "offset" not in record:
        return None
    offset = read_timedelta(record["offset"])
    return timezone(offset, record["name"]) if "name" in record else timezone(offset)
