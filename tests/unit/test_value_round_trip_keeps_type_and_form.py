"""Rules 21 and 52: what is read is what was written, in value and in type, on every read a fresh copy."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import traceback
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, localcontext
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.utils.functional import lazystr
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy, override

from django_durable.errors import UndecodableValue
from django_durable.payloads import decode, encode
from tests.unit.exactness import identical

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e16, "1e+16"),
        (1970670598291982290, "1970670598291982290"),
        (10**40, "1" + "0" * 40),
        (math.inf, '{"$float":"inf"}'),
        (-math.inf, '{"$float":"-inf"}'),
        (math.nan, '{"$float":"nan"}'),
        ("", '""'),
        ("a\x00b", '"a\\u0000b"'),
        ("\\u0000", '"\\\\u0000"'),
        ("\ud83d", '"\\ud83d"'),
        ("\U0001f600", '"\\ud83d\\ude00"'),
        ("\ud83d\ude00", '{"$str":"7aC97biA"}'),
        ([1, "a"], '[1,"a"]'),
        ((1, "a"), '{"$tuple":[1,"a"]}'),
        ({3, 1, 2}, '{"$set":[1,2,3]}'),
        (frozenset("ba"), '{"$frozenset":["a","b"]}'),
        ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
        ({1: "a", "1": "b", None: "c"}, '{"$dict":[1,"a","1","b",null,"c"]}'),
        ({"$decimal": "1"}, '{"$dict":["$decimal","1"]}'),
        ({"$gt": 1, "$lt": 2}, '{"$gt":1,"$lt":2}'),
        ({"a": {"$dict": []}}, '{"a":{"$dict":["$dict",[]]}}'),
        ({"price": "$5"}, '{"price":"$5"}'),
        ('{"$decimal":"1"}', '"{\\"$decimal\\":\\"1\\"}"'),
        (Decimal("1.10"), '{"$decimal":"1.10"}'),
        (Decimal("sNaN7"), '{"$decimal":"sNaN7"}'),
        (Decimal("0E-30"), '{"$decimal":"0E-30"}'),
        (UUID(int=1), '{"$uuid":"00000000-0000-0000-0000-000000000001"}'),
        (b"\x00\xff", '{"$bytes":"AP8="}'),
        (date(2024, 2, 29), '{"$date":"2024-02-29"}'),
        (timedelta(days=-1, microseconds=1), '{"$timedelta":[-1,0,1]}'),
        (time(12, 30, 0, 1), '{"$time":"12:30:00.000001"}'),
        (datetime(2024, 1, 1, 12), '{"$datetime":"2024-01-01T12:00:00"}'),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), '{"$datetime":"2024-01-01T12:00:00+00:00"}'),
        (
            datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
            '{"$datetime":{"at":"2024-10-27T02:30:00","fold":1,"zone":"Europe/Berlin"}}',
        ),
        (
            datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1), "CET")),
            '{"$datetime":{"at":"2024-01-01T00:00:00","offset":[0,3600,0],"name":"CET"}}',
        ),
    ],
)
def test_a_value_has_one_stored_form_and_comes_back(value: object, stored: str) -> None:
    assert encode(value, where="value") == stored
    assert identical(decode(stored), value)


def test_utc_and_the_zone_named_utc_stay_apart() -> None:
    at = datetime(2024, 1, 1)
    zones = (UTC, ZoneInfo("UTC"), timezone(timedelta(0), "UTC"), timezone(timedelta(0), "Z"))
    values = [at.replace(tzinfo=zone) for zone in zones]
    read = decode(encode(values, where="value"))
    assert [repr(value.tzinfo) for value in read] == [repr(zone) for zone in zones]
    assert read[0].tzinfo is UTC


def test_a_decimal_ignores_the_context_of_the_reader() -> None:
    value = Decimal("1.23456789012345678901234567890123456789E+400")
    text = encode(value, where="value")
    with localcontext() as context:
        context.prec = 3
        context.traps = dict.fromkeys(context.traps, True)
        assert decode(text).as_tuple() == value.as_tuple()


def test_every_read_gives_fresh_objects() -> None:
    shared = [1]
    text = encode([shared, shared, {"a": shared}], where="value")
    first, second = decode(text), decode(text)
    first[0].append(2)
    assert first == [[1, 2], [1], {"a": [1]}]
    assert second == [[1], [1], {"a": [1]}]


def test_encoding_leaves_the_value_alone() -> None:
    value = {"a": [Decimal(1), {"$x": (1,)}], "b": {1: 2}}
    encode(value, where="value")
    assert value == {"a": [Decimal(1), {"$x": (1,)}], "b": {1: 2}}


def test_lazy_strings_are_evaluated_to_exact_strings_in_the_language_of_the_caller() -> None:
    value = {gettext_lazy("Yes"): [gettext_lazy("No"), lazystr(mark_safe("<b>"))]}
    with override("de"):
        text = encode(value, where="value")
    assert text == '{"Ja":["Nein","<b>"]}'


def test_the_members_of_a_set_have_one_order_whatever_the_hash_seed() -> None:
    code = (
        "import django.conf; django.conf.settings.configure();"
        "from django_durable.payloads import encode;"
        "print(encode([{'a', 'b', 'c', (1, 'x'), None, 2}, frozenset({'x', b'x', 1.5})], where='value'))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


@pytest.mark.parametrize("digits", [640, 4300, 4301, 20_000])
@pytest.mark.parametrize("writer", [640, 4300, 0])
@pytest.mark.parametrize("reader", [640, 4300, 0])
def test_an_integer_passes_between_processes_of_any_digit_limit(
    digits: int, writer: int, reader: int, restored_digit_limit: None
) -> None:
    number = -(10 ** (digits - 1)) - 7
    sys.set_int_max_str_digits(writer)
    text = encode({"n": number, "plain": 1}, where="value")
    sys.set_int_max_str_digits(reader)
    assert decode(text) == {"n": number, "plain": 1}


@pytest.fixture
def restored_digit_limit():  # type: ignore[no-untyped-def]
    limit = sys.get_int_max_str_digits()
    yield
    sys.set_int_max_str_digits(limit)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ('{"a":S3CRET}', "character 5"),
        ("NaN", "NaN is not allowed"),
        ("[1] [2]", "no JSON"),
        ("9" * 4301, "4300 digits"),
        ('{"$S3":"S3CRET"}', "'$S3' is no kind of value"),
        ('{"$decimal":"S3CRET"}', "malformed: decimal.InvalidOperation"),
        ('{"$decimal":1.5}', "malformed"),
        ('{"$date":"S3CRET"}', "malformed"),
        ('{"$set":[[1]]}', "malformed"),
        ('{"$set":[1,1]}', "malformed"),
        ('{"$dict":[1]}', "malformed"),
        ('{"$dict":[1,2,1,3]}', "malformed"),
        ('{"$timedelta":[99999999999,0,0]}', "malformed"),
        ('{"$float":"1.5"}', "malformed"),
        ('{"$datetime":{"at":"2024-01-01","zone":"Nowhere/Town"}}', "malformed: zoneinfo"),
        ('{"$type:gone.Class":1}', "no value type 'gone.Class' is registered"),
        ('{"$type:os.system":"S3CRET"}', "no value type 'os.system' is registered"),
        ("@zlib:S3CRET!", "no base64"),
        ("@zlib:AAAA", "codec 'zlib' is not in DURABLE"),
    ],
)
def test_a_broken_text_is_refused_by_name_and_without_its_content(text: str, told: str) -> None:
    with pytest.raises(UndecodableValue) as info:
        decode(text)
    assert told in str(info.value)
    assert "S3CRET" not in str(info.value)
    assert "S3CRET" not in "".join(traceback.format_exception(info.value))


@pytest.mark.parametrize("stored", [None, b"1", 1, ["1"]])
def test_what_is_not_text_is_refused(stored: object) -> None:
    with pytest.raises(UndecodableValue, match="is text, not"):
        decode(stored)  # type: ignore[arg-type]


def test_stored_text_is_json_for_other_readers_too() -> None:
    value = {"a": math.nan, "b": [math.inf], "c": {1: Decimal("NaN")}}
    json.loads(encode(value, where="value"), parse_constant=lambda name: pytest.fail(name))
