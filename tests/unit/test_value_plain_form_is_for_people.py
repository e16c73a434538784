"""The plain form: JSON with exact digits, for REST, the admin and the command line."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from django_durable.payloads import (
    Ref,
    redact,
    redact_text,
    register_value,
    secrets_in,
    to_plain,
    to_tagged,
    value_type,
)

SECRET = "S3CRET-xyz"


class Colour(Enum):
    RED = "r"
    PAIR = (1, Decimal("2.5"))


@dataclass
class Login:
    user: str
    Password: str = field(default=SECRET, repr=False)


class Foreign:
    pass


register_value(Foreign, lambda foreign: {"password": SECRET, "x": Decimal(1)}, lambda stored: Foreign(), "test.Shown")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (1970670598291982290, 1970670598291982290),
        (10**40, 10**40),
        (1e16, 1e16),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (Decimal("12.50"), "12.50"),
        (Decimal("sNaN"), "sNaN"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"\x00\xff", "AP8="),
        (date(2024, 2, 29), "2024-02-29"),
        (time(1, 2, 3), "01:02:03"),
        (datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01T00:00:00+00:00"),
        (datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")), "2024-10-27T02:30:00+01:00"),
        (timedelta(days=2, seconds=1), "P2DT00H00M01S"),
        (timedelta(seconds=-1.5), "-P0DT00H00M01.500000S"),
        ((1, [2]), [1, [2]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        ({False: 1, "false": 2, 1.5: 3, (1, "x"): 4}, {"false": 1, "false (str)": 2, "1.5": 3, '[1, "x"]': 4}),
        ({Decimal("1.0"): 1, Colour.RED: 2, date(2024, 1, 1): 3}, {"1.0": 1, "r": 2, "2024-01-01": 3}),
        ("lone \ud83d and \x00", "lone \\ud83d and \x00"),
        ({"\ud83d": "\U0001f600é"}, {"\\ud83d": "\U0001f600é"}),
        (Colour.PAIR, [1, "2.5"]),
        (Login("a"), {"user": "a", "Password": SECRET}),
        (Ref.to("auth.Group", UUID(int=0)), {"model": "auth.Group", "pk": "00000000-0000-0000-0000-000000000000"}),
        (Foreign(), {"password": SECRET, "x": "1"}),
        (object(), "<object>"),
        ([len], ["<builtin_function_or_method>"]),
    ],
)
def test_every_kind_of_value_has_a_plain_form(value: Any, plain: Any) -> None:
    assert to_plain(value) == plain
    assert json.loads(json.dumps(to_plain(value), allow_nan=False)) == plain


def test_digits_are_exact_in_the_text_that_is_sent() -> None:
    text = json.dumps(to_plain({"id": 1970670598291982290, "n": 10**40, "f": 1e16}))
    assert text == '{"id": 1970670598291982290, "n": 1' + "0" * 40 + ', "f": 1e+16}'


def test_a_number_that_python_refuses_to_print_shows_in_hexadecimal() -> None:
    assert to_plain(-(16**4000)) == "-0x1" + "0" * 4000


def test_a_registered_class_whose_encode_fails_shows_its_name() -> None:
    class Broken:
        pass

    register_value(Broken, lambda broken: 1 / 0, lambda stored: Broken(), "test.Broken")
    assert to_plain([Broken()]) == ["<test.Broken>"]


def test_members_are_masked_by_key_at_any_depth_and_case() -> None:
    value = {
        "password": SECRET,
        "nested": [{"API_TOKEN": SECRET, "tokens": 3}, (Login("a"),)],
        "deep": {1: {"token": {"any": [SECRET]}}},
        Colour.RED: SECRET,
        "foreign": Foreign(),
        "kept": "token",
    }
    masked = redact(value, ["pass*", "*token", "r"])
    assert SECRET not in json.dumps(masked)
    assert masked["nested"] == [{"API_TOKEN": "********", "tokens": 3}, [{"user": "a", "Password": "********"}]]
    assert masked["deep"] == {"1": {"token": "********"}}
    assert masked["r"] == "********" and masked["kept"] == "token"
    assert redact(value, []) == to_plain(value)


def test_two_keys_of_one_plain_form_are_both_masked() -> None:
    value_type("test.Colour")(Colour)
    masked = redact({Colour.RED: SECRET, "r": SECRET}, ["r"])
    assert masked == {"r": "********", "r (str)": "********"}


def test_the_tagged_form_is_masked_too() -> None:
    from django_durable.payloads import encode

    value_type("test.Colour")(Colour)
    value_type("test.Login")(Login)
    value = {1: 2, "token": SECRET, "login": Login("a"), "$x": {"$token": Decimal(1)}, Colour.RED: SECRET}
    text = encode(value, where="value")
    assert to_tagged(text) == json.loads(text)
    masked = to_tagged(text, globs=["token", "password", "RED", "$token"])
    assert masked == {
        "$dict": [
            1,
            2,
            "token",
            "********",
            "login",
            {"$type:test.Login": {"user": "a", "Password": "********"}},
            "$x",
            {"$dict": ["$token", "********"]},
            {"$type:test.Colour": "RED"},
            "********",
        ]
    }
    assert to_tagged('{"token":"x"}', globs=["token"]) == {"token": "********"}
    assert to_tagged('{"$decimal":"1"}', globs=["*"]) == {"$decimal": "1"}


def test_secrets_are_collected_for_the_masking_of_free_text() -> None:
    value = {"password": SECRET, "deep": [{"token": {"a": [12345, "it's\n"]}}], "pin": "123", "other": "kept"}
    secrets = secrets_in(value, ["password", "token", "pin"])
    assert secrets == {SECRET, "12345", "it's\n"}
    assert secrets_in(value, []) == frozenset()
    text = f"ValueError: {value!r} and {SECRET!r}"
    masked = redact_text(text, [], secrets)
    assert not any(secret in masked or repr(secret)[1:-1] in masked for secret in secrets)
    assert "'other': 'kept'" in masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=abc, x=1", "password=********, x=1"),
        ('{"password": "a \\" b", "x": 1}', '{"password": ********, "x": 1}'),
        ("{'PassWord': 'abc'}", "{'PassWord': ********}"),
        ("the password: abc def", "the password: ******** def"),
        ("my_token=abc other_tokens=abc", "my_token=******** other_tokens=abc"),
        ("DATABASE password is wrong", "DATABASE password is wrong"),
        ("nopassword=abc", "nopassword=abc"),
    ],
)
def test_assignments_in_free_text_are_masked_by_their_name(text: str, masked: str) -> None:
    assert redact_text(text, ["password", "*token"]) == masked


def test_a_glob_with_many_stars_takes_no_time_on_a_long_word() -> None:
    text = "a" * 200_000 + " akey=abc"
    assert redact_text(text, ["*a*b*c*d*e*key*", "*a*key"]).endswith(" akey=********")
