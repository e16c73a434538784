"""Rules 52 and 53: what would not come back exactly is refused before it is stored, by step, path and remedy."""

from __future__ import annotations

import io
import struct
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.utils.functional import SimpleLazyObject, lazy
from django.utils.safestring import mark_safe

from django_durable.errors import DurableError, PayloadTooLarge, UnserializableValue
from django_durable.payloads import Ref, encode, register_value, value_type

Pair = namedtuple("Pair", "a b")


class Plain:
    def __repr__(self) -> str:
        raise RuntimeError("nobody asked")

    __str__ = __repr__


class Shade(Enum):
    DARK = 1


class Size(IntEnum):
    BIG = 2


@dataclass
class Unregistered:
    x: int = 1


class Text(str):
    pass


class Zone(tzinfo):
    def utcoffset(self, at: datetime | None) -> timedelta:
        return timedelta(hours=1)


@value_type
@dataclass
class Parcel:
    content: Any


@value_type
@dataclass
class Late:
    filled: Any

    def __init__(self) -> None:
        pass


class Wrapped:
    def __init__(self, inside: Any) -> None:
        self.inside = inside


register_value(Wrapped, lambda wrapped: wrapped.inside.strip(), Wrapped, "test.Wrapped")


async def coroutine() -> None: ...


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Plain(), "Plain; pass what it consists of"),
        (object(), "builtins.object"),
        (Plain, "builtins.type"),
        (len, "builtin_function_or_method"),
        (3j, "builtins.complex"),
        (range(3), "builtins.range"),
        (bytearray(b"x"), "builtins.bytearray"),
        (memoryview(b"x"), "builtins.memoryview"),
        ({}.keys(), "builtins.dict_keys"),
        ((n for n in [1]), "pass list(…) of it"),
        (iter([1]), "pass list(…) of it"),
        (deque([1]), "collections.deque"),
        (types.SimpleNamespace(), "types.SimpleNamespace"),
        (ValueError("x"), "builtins.ValueError"),
        (Group(name="x"), "pass Ref(instance)"),
        (Group.objects.none(), "queryset.values"),
        (Group.objects, "pass what it consists of"),
        (Shade.DARK, "@value_type"),
        (Size.BIG, "@value_type"),
        (Unregistered(), "@value_type"),
        (Text("x"), "only str itself"),
        (mark_safe("x"), "only str itself"),
        (OrderedDict(a=1), "only dict itself"),
        (defaultdict(list), "only dict itself"),
        (Pair(1, 2), "only tuple itself"),
        (SimpleLazyObject(lambda: 1), "SimpleLazyObject"),
        (lazy(lambda: 1, int)(), "only lazy strings"),
        (datetime(2024, 1, 1, tzinfo=Zone()), "zone of class"),
        (Late(), "no value in its field 'filled'"),
        (Wrapped(1), "test.Wrapped whose registered encode() raised builtins.AttributeError"),
    ],
)
def test_the_message_names_step_path_class_and_remedy(value: object, told: str) -> None:
    for inside, path in (
        (value, "$"),
        ({"items": [1, (2, value)]}, "$['items'][1][1]"),
        ([Parcel({7: value})], "$[0].content[7]"),
    ):
        with pytest.raises(UnserializableValue) as info:
            encode(inside, where="result of step 'shop.charge'")
        assert info.value.path == path
        assert str(info.value).startswith(f"result of step 'shop.charge' cannot be stored: {path} ")
        assert told in str(info.value)
        assert isinstance(info.value, TypeError) and isinstance(info.value, DurableError)


def test_a_coroutine_is_to_be_awaited() -> None:
    made = coroutine()
    with pytest.raises(UnserializableValue, match="await it first"):
        encode(made, where="value")
    made.close()


def test_a_zone_without_a_key_of_this_machine_is_refused() -> None:
    utc = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + struct.pack(">lbb", 0, 0, 0) + b"UTC\0"
    for key in (None, "Nowhere/Town", "../passwd"):
        zone = ZoneInfo.from_file(io.BytesIO(utc), key=key)
        with pytest.raises(UnserializableValue, match="names no zone of this machine"):
            encode(datetime(2024, 1, 1, tzinfo=zone), where="value")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({(1, Plain()): 2}, "$[<tuple>][1]"),
        ({Decimal(1): Plain()}, "$[<Decimal>]"),
        ({True: Plain()}, "$[True]"),
        ({"x" * 200: Plain()}, f"$['{'x' * 40}'…]"),
        ({10**5000: Plain()}, "$[<int>]"),
        (Ref.to("auth.Group", Plain()), "$.pk"),
    ],
)
def test_the_path_leads_through_keys_and_references(value: object, path: str) -> None:
    with pytest.raises(UnserializableValue) as info:
        encode(value, where="value")
    assert info.value.path == path


def test_a_long_path_is_cut_inside() -> None:
    value: Any = Plain()
    for number in range(100):
        value = {f"k{number}": value}
    with pytest.raises(UnserializableValue) as info:
        encode(value, where="value")
    assert info.value.path.startswith("$['k99']['k98']") and info.value.path.endswith("['k1']['k0']")
    assert len(info.value.path) < 150


def test_an_error_in_a_registered_encode_is_kept_as_the_cause() -> None:
    with pytest.raises(UnserializableValue) as info:
        encode([Wrapped(1)], where="value")
    assert isinstance(info.value.__cause__, AttributeError)


def test_too_large_names_size_limit_and_remedy(settings: Any) -> None:
    settings.DURABLE = {"MAX_PAYLOAD_BYTES": 1_024}
    assert len(encode("x" * 1_022, where="value")) == 1_024
    with pytest.raises(PayloadTooLarge) as info:
        encode("é" * 200, where="input of workflow 'shop.fulfil'")
    assert str(info.value).startswith(
        "input of workflow 'shop.fulfil' is 1,202 bytes encoded, and the limit is 1,024"
    )
    assert "Ref(instance)" in str(info.value) and "MAX_PAYLOAD_BYTES" in str(info.value)
    assert len(encode("é" * 200, where="value", limit=1_202)) == 1_202


@pytest.mark.parametrize("leaf", ["x", Decimal(1)])
def test_a_small_object_that_would_explode_is_refused_before_it_does(leaf: object) -> None:
    value: Any = leaf
    for _ in range(60):
        value = [value, value]
    with pytest.raises(PayloadTooLarge, match="more than 1,048,576 bytes"):
        encode(value, where="value")
    big = "x" * 1_000_000
    with pytest.raises(PayloadTooLarge, match="more than"):
        encode([big] * 100_000 + [leaf], where="value")


def test_a_huge_leaf_is_refused_without_being_copied() -> None:
    for value in (b"x" * 2_000_000, "é" * 2_000_000, {"a": b"x" * 2_000_000}):
        with pytest.raises(PayloadTooLarge):
            encode(value, where="value")
