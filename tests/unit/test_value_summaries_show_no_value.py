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
        ({"a": 1, "b": 2, "c": "S3CRET"}, "dict, 3 keys"),
        ({"S3CRET": 1}, "dict, 1 key"),
        ({}, "dict, 0 keys"),
        ({1: "S3CRET", 2: "S3CRET"}, "dict, 2 keys"),
        ({"$S3CRET": 1}, "dict, 1 key"),
        ([1, 2], "list, 2 items"),
        ((1,), "tuple, 1 item"),
        ({1, 2}, "set, 2 items"),
        (frozenset(), "frozenset, 0 items"),
        ("S3CRET", "str"),
        ("\ud83d\ude00", "str"),
        (12, "int"),
        (1.5, "float"),
        (float("nan"), "float"),
        (Decimal("1.5"), "Decimal"),
        (UUID(int=0), "UUID"),
        (b"S3CRET", "bytes"),
        (datetime(2024, 1, 1, tzinfo=UTC), "datetime"),
        (date(2024, 1, 1), "date"),
        (timedelta(1), "timedelta"),
        (Ref.to("auth.Group", "S3CRET"), "Ref"),
        (Parcel("S3CRET"), "test.Parcel"),
    ],
)
def test_a_value_shows_as_type_and_size(value: Any, shown: str) -> None:
    text = encode(value, where="value")
    assert summarize(text) == f"{shown}, {len(text)} bytes"


def test_the_size_is_that_of_the_stored_text() -> None:
    assert summarize('{"a":1,"b":2,"c":"S3CRET"}') == "dict, 3 keys, 26 bytes"
    assert summarize("1") == "int, 1 byte"


@pytest.mark.parametrize(("value", "shown"), [(None, "None"), (True, "bool"), (False, "bool")])
def test_the_size_is_left_out_where_it_would_be_the_value(value: Any, shown: str) -> None:
    assert summarize(encode(value, where="value")) == shown


def test_a_number_too_long_for_digits_is_still_a_number() -> None:
    assert summarize(encode(10**5000, where="value")).startswith("int, ")


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
