"""Values in the form that people and other programs read: plain JSON, no longer exact in type."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from django.utils.duration import duration_iso_string
from django.utils.functional import Promise

from django_durable.payloads import tags
from django_durable.payloads.refs import Ref
from django_durable.payloads.registry import entry_for
from django_durable.payloads.scalars import write_bytes, write_int

__all__ = ["to_plain"]

Mask = Callable[[str], bool]
MASKED: Final = "********"
DEEPER: Final = "…"


def to_plain(value: Any) -> Any:
    """The value as None, bool, int, float, str, list and dict with str keys.

    Integers stay exact (one that Python refuses to print becomes hexadecimal text); Decimal, UUID and the
    special floats become strings, dates ISO 8601, durations too (``P1DT00H00M02S``), bytes base64; tuples and
    sets lists, sets in a fixed order; Enums their value, dataclasses dicts, a Ref ``{"model", "pk"}``; lone
    surrogates their escape. Keys become strings; two that become the same are told apart by their type. What
    is no storable value shows as its class; never raises for a decoded value.
    """
    return make_plain(value, None, 0)


def make_plain(value: Any, mask: Mask | None, depth: int) -> Any:
    """``to_plain``, with members masked whose key ``mask`` picks."""
    kind = type(value)
    if kind is bool or value is None:
        return value
    if kind in LEAVES:
        return LEAVES[kind](value)
    if depth >= tags.NESTING_LIMIT:
        return DEEPER
    if kind is dict:
        return plain_dict(value, mask, depth)
    if kind in (list, tuple):
        return [make_plain(member, mask, depth + 1) for member in value]
    if kind in (set, frozenset):
        return sorted((make_plain(member, mask, depth + 1) for member in value), key=sort_key)
    return plain_object(value, mask, depth)


def plain_object(value: Any, mask: Mask | None, depth: int) -> Any:
    if type(value) is Ref:
        return plain_dict({"model": value.label, "pk": value.pk}, mask, depth)
    if isinstance(value, Enum):
        return make_plain(value._value_, mask, depth + 1)
    if isinstance(value, Promise):
        return plain_str(str(value))
    entry = entry_for(type(value))
    if entry is not None and entry.fields is None:
        try:
            stored = entry.write(value)
        except Exception:
            return f"<{entry.name}>"
        return make_plain(stored, mask, depth + 1)
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name, None) for field in fields(value)}
        return plain_dict(held, mask, depth)
    return f"<{type(value).__qualname__}>"


def plain_dict(value: dict[Any, Any], mask: Mask | None, depth: int) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, member in value.items():
        name = plain_key(key, depth)
        shown = MASKED if mask is not None and mask(name) else make_plain(member, mask, depth + 1)
        while name in plain:
            name = f"{name} ({type(key).__name__})"
        plain[name] = shown
    return plain


def plain_key(key: Any, depth: int) -> str:
    if type(key) is str:
        return plain_str(key)
    plain = make_plain(key, None, depth + 1)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def plain_str(value: str) -> str:
    """The text, with what UTF-8 has no form for escaped: a page with it could not be sent."""
    text = str.__str__(value)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def plain_int(value: int) -> int | str:
    """The number; hexadecimal where the interpreter would refuse to print it."""
    return value if isinstance(write_int(value), int) else hex(value)


def plain_float(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def sort_key(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True)


LEAVES: Final[dict[type, Callable[[Any], Any]]] = {
    str: plain_str,
    int: plain_int,
    float: plain_float,
    Decimal: str,
    UUID: str,
    bytes: write_bytes,
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: duration_iso_string,
}
