"""Each fault of ``DURABLE`` is found, named with key and value, and leaves the key at its default."""

from __future__ import annotations

import math
from collections import UserDict
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_durable.conf import KINDS, Config, Problem, read

WRONG_TYPES: list[tuple[str, object]] = [
    ("LEASE_SECONDS", "30"),
    ("LEASE_SECONDS", True),
    ("LEASE_SECONDS", None),
    ("POLL_SECONDS", [1]),
    ("NOTIFY", "yes"),
    ("NOTIFY", 1),
    ("TICK_SECONDS", "1"),
    ("WORKER_CONCURRENCY", 4.0),
    ("WORKER_CONCURRENCY", True),
    ("WORKER_SHUTDOWN_SECONDS", "30"),
    ("MAX_RECOVERIES", "10"),
    ("MAX_CLAIM_FAILURES", 1.5),
    ("MAX_PAYLOAD_BYTES", None),
    ("MAX_POSITIONS", "many"),
    ("INLINE_RETRY_SECONDS", "1"),
    ("BODY_QUERIES", False),
    ("SPINE", None),
    ("PLANES", ["eu"]),
    ("PLANES", {"eu": None}),
    ("PLANES", {1: "eu_db"}),
    ("UNTENANTED", None),
    ("CROSS_DATABASE_START", True),
    ("TENANT_RESOLVER", len),
    ("DEFAULT_QUEUE", 1),
    ("DEFAULT_RETRY", 3),
    ("DEFAULT_RETRY", "3"),
    ("DEFAULT_RETRY", dict),
    ("CODECS", "shop.codecs.zip"),
    ("CODECS", {"shop.codecs.zip"}),
    ("CODECS", [len]),
    ("REDACT", "token"),
    ("REDACT", [1]),
    ("CALLBACK_BASE_URL", b"https://shop.example"),
    ("EVENT_RETENTION", "7 days"),
    ("RETENTION", timedelta(days=7)),
    ("RETENTION", {"completed": "7 days"}),
    ("RETENTION", {1: 7}),
    ("AUTODISCOVER_MODULE", False),
    ("REST_PERMISSION_CLASSES", "shop.rest.Staff"),
    ("REST_AUTHENTICATION_CLASSES", [1]),
    ("REST_THROTTLE_CLASSES", {"shop.rest.Slow": 1}),
]
WRONG_VALUES: list[tuple[str, object]] = [
    ("LEASE_SECONDS", 0),
    ("LEASE_SECONDS", -1),
    ("LEASE_SECONDS", math.nan),
    ("LEASE_SECONDS", math.inf),
    ("LEASE_SECONDS", timedelta(0)),
    ("LEASE_SECONDS", timedelta.max),
    ("POLL_SECONDS", 0),
    ("TICK_SECONDS", 0.0),
    ("TICK_SECONDS", 1e10),
    ("WORKER_CONCURRENCY", 0),
    ("WORKER_SHUTDOWN_SECONDS", -0.1),
    ("MAX_RECOVERIES", -1),
    ("MAX_RECOVERIES", 2**31),
    ("MAX_CLAIM_FAILURES", 0),
    ("MAX_PAYLOAD_BYTES", 0),
    ("MAX_PAYLOAD_BYTES", 2**30),
    ("MAX_POSITIONS", 0),
    ("INLINE_RETRY_SECONDS", -1),
    ("BODY_QUERIES", "deny"),
    ("SPINE", ""),
    ("PLANES", {"": "eu_db"}),
    ("PLANES", {"e" * 256: "eu_db"}),
    ("UNTENANTED", "allow"),
    ("CROSS_DATABASE_START", "Refuse"),
    ("TENANT_RESOLVER", "resolve"),
    ("TENANT_RESOLVER", "shop..resolve"),
    ("TENANT_RESOLVER", "shop.tenants:resolve"),
    ("DEFAULT_QUEUE", " "),
    ("CODECS", ["zip"]),
    ("REDACT", [""]),
    ("CALLBACK_BASE_URL", "shop.example/durable"),
    ("CALLBACK_BASE_URL", "ftp://shop.example"),
    ("CALLBACK_BASE_URL", "https://"),
    ("CALLBACK_BASE_URL", "https://[shop.example"),
    ("CALLBACK_BASE_URL", "https://shop.example/?a=1"),
    ("EVENT_RETENTION", 0),
    ("EVENT_RETENTION", -1),
    ("RETENTION", {"complete": 7}),
    ("RETENTION", {"running": 7}),
    ("RETENTION", {"completed": 0}),
    ("RETENTION", {"shop.*": 0}),
    ("RETENTION", {"": 7}),
    ("AUTODISCOVER_MODULE", ""),
    ("AUTODISCOVER_MODULE", "work-flows"),
    ("REST_PERMISSION_CLASSES", ["Staff"]),
]


def only_problem(raw: object) -> tuple[Config, Problem]:
    found, problems = read(raw)
    assert len(problems) == 1, [each.message() for each in problems]
    return found, problems[0]


def test_no_key_is_left_without_a_wrong_type() -> None:
    assert {key for key, _ in WRONG_TYPES} == set(KINDS)


@pytest.mark.parametrize(("key", "value"), WRONG_TYPES)
def test_a_wrong_type_is_one_problem_and_leaves_the_default(key: str, value: object) -> None:
    found, problem = only_problem({key: value})
    assert (problem.fault, problem.key) == ("type", key)
    assert found == Config()
    assert f"DURABLE['{key}'] is {value!r} ({type(value).__name__}), but must be " in problem.message()
    assert repr(getattr(Config(), key.lower())) in problem.hint()


@pytest.mark.parametrize(("key", "value"), WRONG_VALUES)
def test_a_wrong_value_is_one_problem_and_leaves_the_default(key: str, value: object) -> None:
    found, problem = only_problem({key: value})
    assert (problem.fault, problem.key) == ("value", key)
    assert found == Config()
    assert problem.message().startswith(f"DURABLE['{key}'] is {value!r}"[:100])


@pytest.mark.parametrize(
    ("key", "suggestion"),
    [("LEASE", "LEASE_SECONDS"), ("lease_seconds", "LEASE_SECONDS"), ("MAX_POSITION", "MAX_POSITIONS")],
)
def test_an_unknown_key_gets_a_suggestion(key: str, suggestion: str) -> None:
    _, problem = only_problem({key: 1})
    assert (problem.fault, problem.key) == ("unknown", key)
    assert problem.message() == f"DURABLE has no key {key!r}."
    assert problem.hint() == f"Did you mean '{suggestion}'?"


@pytest.mark.parametrize("key", ["ZZZ", 3, None])
def test_an_unknown_key_without_a_near_one_gets_the_list(key: object) -> None:
    _, problem = only_problem({key: 1})
    assert problem.message() == f"DURABLE has no key {key!r}."
    assert all(known in problem.hint() for known in KINDS)


@pytest.mark.parametrize("raw", [None, [], "LEASE_SECONDS", 3, [("LEASE_SECONDS", 3)]])
def test_anything_but_a_dict_is_one_problem(raw: object) -> None:
    found, problem = only_problem(raw)
    assert (found, problem.fault) == (Config(), "shape")
    assert problem.message() == f"settings.DURABLE is {raw!r} ({type(raw).__name__}), but must be a dict."


def test_any_mapping_will_do() -> None:
    assert read(UserDict({"LEASE_SECONDS": 9}))[0].lease_seconds == 9.0


def test_a_poll_longer_than_the_lease_is_an_impossible_combination() -> None:
    found, problem = only_problem({"LEASE_SECONDS": 10, "POLL_SECONDS": 11})
    assert (problem.fault, problem.key) == ("combination", "POLL_SECONDS")
    assert "is 11, but must be at most LEASE_SECONDS, which is 10.0" in problem.message()
    assert found.poll_seconds <= found.lease_seconds == 10.0
    assert only_problem({"POLL_SECONDS": 31})[1].fault == "combination"
    assert read({"LEASE_SECONDS": 10, "POLL_SECONDS": 10})[1] == []


def test_a_wrong_lease_is_not_reported_a_second_time_as_a_combination() -> None:
    assert only_problem({"LEASE_SECONDS": "x", "POLL_SECONDS": 60})[1].fault == "type"


def test_all_problems_are_found_in_the_order_of_the_keys() -> None:
    _, problems = read({"SPINE": 1, "NOPE": 2, "MAX_POSITIONS": 0, "LEASE_SECONDS": 1, "POLL_SECONDS": 2})
    assert [each.fault for each in problems] == ["type", "unknown", "value", "combination"]


def test_a_message_is_translated_part_by_part() -> None:
    _, problem = only_problem({"SPINE": 1})
    words = {
        "DURABLE[%(key)s] is %(value)s (%(type)s), but must be %(expected)s.": "%(key)s → %(expected)s",
        "a text of 1 to 255 characters": "ein Text",
    }
    assert problem.message(lambda text: words.get(text, text)) == "'SPINE' → ein Text"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_a_value_that_cannot_be_shown_is_still_reported() -> None:
    assert "<Broken>" in only_problem({"SPINE": Broken()})[1].message()
    assert len(only_problem({"SPINE": "x" * 10_000})[1].message()) < 250
    assert "<int>" in only_problem({"MAX_POSITIONS": 10**5000})[1].message()


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.timedeltas(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(sorted(KINDS)) | st.text() | st.integers(), anything) | anything)
def test_reading_never_raises_and_a_value_is_either_taken_or_reported(raw: object) -> None:
    found, problems = read(raw)
    assert isinstance(found, Config)
    for problem in problems:
        assert problem.message()
        assert problem.hint()
    if isinstance(raw, dict):
        assert len(found.chosen) + len(problems) == len(raw)
