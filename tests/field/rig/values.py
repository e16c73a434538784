"""The values of field report B24, and how code after a step sees them."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django_durable import value_type


@value_type
class Colour(enum.Enum):
    RED = 1
    BLUE = "blue"


@value_type
@dataclass(frozen=True)
class Money:
    amount: Decimal
    currency: str


VALUES: dict[str, Any] = {
    "tuple": (1, 2),
    "list": [1, (2, [3])],
    "dict with int keys": {1: "a", 2: {"b": 3}},
    "dict with mixed keys": {1: "a", "1": "b", (1, 2): "c", None: "d", 2.5: "e"},
    "dict that looks like a tag": {"$tuple": [1]},
    "decimal": Decimal("1.10"),
    "decimal exponent": Decimal("1E+3"),
    "datetime": dt.datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    "datetime utc": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "datetime offset": dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))),
    "naive datetime": dt.datetime(2026, 1, 1, 12),
    "date": dt.date(2026, 2, 28),
    "time": dt.time(23, 59, 59, 999999),
    "timedelta": dt.timedelta(days=-1, microseconds=1),
    "uuid": UUID("12345678-1234-5678-1234-567812345678"),
    "bytes": b"\x00\xff",
    "set": {3, 1, 2},
    "frozenset": frozenset({1}),
    "enum": Colour.RED,
    "dataclass": Money(Decimal("3.50"), "EUR"),
    "float": 0.1 + 0.2,
    "negative zero": -0.0,
    "nan": math.nan,
    "infinity": -math.inf,
    "large int": 2**63,
    "larger int": -(10**60),
    "empty text": "",
    "text": "nul \x00, surrogate \ud800, ü, 🎉",
    "none": None,
    "true": True,
    "one": 1,
    "one as float": 1.0,
    "nested": {"a": [(Decimal("0.10"), {1: {Colour.BLUE}}), None], "b": (Money(Decimal(1), "€"), [True, 1, 1.0])},
}


def seen(value: Any) -> str:
    """Type and form, all the way down, as one line."""
    return json.dumps(f"{type(value).__name__} {value!r}")


def describe_all(get: Callable[[str], Any]) -> dict[str, str]:
    """How ``get`` shows each value."""
    return {name: seen(get(name)) for name in VALUES}
