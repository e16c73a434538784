"""Rule 54: what may not be seen shows as type and size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from django_durable.payloads import Ref, encode, summarize, value_type


@value_type("test.Parcel")
@dataclass
class Parcel:
    content: Any


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": 1, "b": 2, "c": "S3CRET"}, "dict, 3 keys, 26 bytes"),
        ({"S3CRET": 1}, "dict, 1 key, 12 bytes"),
        ({}, "dict, 0 keys, 2 bytes"),
        ({1: "S3CRET", 2: "S3CRET"}, "dict, 2 keys, 32 bytes"),
        ({"$S3CRET": 1}, "dict, 1 key, 24 bytes"),
        ([1, 2], "list, 2 items, 5 bytes"),
        ((1,), "tuple, 1 item, 14 bytes"),
        ({1, 2}, "set, 2 items, 14 bytes"),
        (frozenset(), "frozenset, 0 items, 17 bytes"),
        ("S3CRET", "str, 8 bytes"),
        ("\ud83d\ude00", "str, 19 bytes"),
        (12, "int, 2 bytes"),
        (1.5, "float, 3 bytes"),
        (float("nan"), "float, 16 bytes"),
        (None, "None"),
        (True, "bool"),
        (False, "bool"),
        (Decimal("1.5"), "Decimal, 18 bytes"),
        (UUID(int=0), "UUID, 47 bytes"),
        (b"S3CRET", "bytes, 21 bytes"),
        (datetime(2024, 1, 1, tzinfo=UTC), "datetime, 41 bytes"),
        (date(2024, 1, 1), "date, 22 bytes"),
        (timedelta(1), "timedelta, 22 bytes"),
        (Ref.to("auth.Group", "S3CRET"), "Ref, 32 bytes"),
        (Parcel("S3CRET"), "test.Parcel, 41 bytes"),
    ],
)
def test_a_value_shows_as_type_and_size(value: Any, shown: str) -> None:
    assert summarize(encode(value, where="value")) == shown


def test_a_number_too_long_for_digits_is_still_a_number() -> None:
    assert summarize(encode(10**5000, where="value")) == "int, 4163 bytes"


def test_a_class_need_not_be_registered_to_be_named() -> None:
    assert summarize('{"$type:gone.Money":{"a":1}}') == "gone.Money, 28 bytes"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, "nothing"),
        ("", "unreadable, 0 bytes"),
        ("{", "unreadable, 1 byte"),
        ("S3CRET", "unreadable, 6 bytes"),
        ("@zlib:S3CRET", "unreadable, 12 bytes"),
        ("[" * 100_000, "unreadable, 100000 bytes"),
        ("9" * 5_000, "unreadable, 5000 bytes"),
        ('{"$set":1}', "set, 10 bytes"),
    ],
)
def test_anything_in_the_column_gives_a_summary(text: str | None, shown: str) -> None:
    assert summarize(text) == shown


def test_not_even_text_in_the_column_raises() -> None:
    assert summarize(b"S3CRET") == "unreadable, 6 bytes"  # type: ignore[arg-type]
