"""Whatever can be encoded comes back identical; whatever is stored is read or refused, and nothing else."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from datetime import UTC, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, auto
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from django_durable.errors import PayloadTooLarge, UndecodableValue, UnserializableValue
from django_durable.payloads import (
    Ref,
    decode,
    decode_failure,
    describe_failure,
    encode,
    encode_failure,
    redact,
    register_value,
    same_value,
    secrets_in,
    summarize,
    to_plain,
    to_tagged,
    value_type,
)
from django_durable.payloads.decoding import READERS
from tests.unit.exactness import identical

FAST = settings(max_examples=200, deadline=None)


@value_type
class Colour(Enum):
    RED = "r"
    GREEN = ("g", 2)


@value_type("test.Level")
class Level(IntEnum):
    LOW = 1
    HIGH = 2


@value_type
class Rights(Flag):
    READ = auto()
    WRITE = auto()


@value_type
@dataclass(frozen=True)
class Point:
    x: Any
    y: Any = 0


@value_type
@dataclass
class Basket:
    items: Any
    note: str = ""
    total: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.total = "computed"


class Foreign:
    def __init__(self, inside: Any) -> None:
        self.inside = inside

    def __eq__(self, other: object) -> bool:
        return type(other) is Foreign and identical(self.inside, other.inside)

    def __hash__(self) -> int:
        return 1


register_value(Foreign, lambda foreign: foreign.inside, Foreign, "test.Foreign")


def make_basket(items: Any, note: str, total: Any) -> Basket:
    basket = Basket(items, note)
    basket.total = total
    return basket


# Every code point, lone surrogates and NUL among them, and with pleasure those that JSON could join.
characters = st.one_of(
    st.characters(exclude_categories=()), st.sampled_from('\x00"\\$@{[\ud83d\ude00\ud800\udfff\U0001f600\u2028')
)
TAG_LIKE = ["$decimal", "$dict", "$type:test.Level", "\\u0000", "__proto__"]
texts = st.one_of(st.text(characters), st.sampled_from(TAG_LIKE))
integers = st.one_of(
    st.integers(),
    st.builds(lambda digits, rest: 10**digits + rest, st.integers(4295, 6000), st.integers()),
    st.builds(lambda digits, rest: -(10**digits) + rest, st.integers(4295, 6000), st.integers()),
)
floats = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack(">d", bits.to_bytes(8, "big"))[0]),
)
decimals = st.one_of(
    st.decimals(allow_nan=True, allow_infinity=True),
    st.sampled_from(["sNaN", "-sNaN77", "NaN12", "-0", "0E-30", "1E+30", "1.10", "-Infinity"]).map(Decimal),
)
offsets = st.timedeltas(timedelta(hours=-23, minutes=-59), timedelta(hours=23, minutes=59))
zones = st.one_of(
    st.none(),
    st.just(UTC),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Etc/GMT+5"]).map(ZoneInfo),
    offsets.map(timezone),
    st.builds(timezone, offsets, texts),
)
folds = st.integers(0, 1)
moments = st.one_of(
    st.builds(lambda at, zone, fold: at.replace(tzinfo=zone, fold=fold), st.datetimes(), zones, folds),
    st.builds(lambda at, zone, fold: at.replace(tzinfo=zone, fold=fold), st.times(), zones, folds),
)
hashable_atoms = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    floats,
    texts,
    decimals.filter(lambda number: not number.is_snan()),
    moments,
    st.dates(),
    st.timedeltas(),
    st.uuids(),
    st.binary(),
    st.sampled_from([*Colour, *Level, Rights.READ | Rights.WRITE, Rights(0)]),
    st.builds(Ref.to, st.sampled_from(["auth.Group", "gone.Model"]), st.one_of(st.integers(), st.uuids(), texts)),
)


def named(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The strategy with a short repr: Hypothesis warns of those that list everything they are made of."""

    @st.composite
    def leaf(draw: st.DrawFn) -> Any:
        return draw(strategy)

    return leaf()


hashables = st.recursive(
    named(hashable_atoms),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Point, inner, inner),
        st.builds(Foreign, inner),
    ),
    max_leaves=5,
)
values = st.recursive(
    st.one_of(hashables, decimals),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(texts, inner, max_size=4),
        st.dictionaries(hashables, inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.sets(hashables, max_size=4),
        st.builds(make_basket, inner, texts, inner),
        st.builds(Foreign, inner),
    ),
    max_leaves=12,
)
plain_values = st.recursive(
    st.one_of(st.none(), st.booleans(), integers, floats, texts),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(texts, inner)),
    max_leaves=20,
)


@FAST
@given(st.one_of(values, plain_values))
@example({"$decimal": "1"})
@example(time(0, tzinfo=timezone(timedelta(microseconds=1))))
@example(["\ud83d", "\ude00", "\ud83d\ude00", "\U0001f600"])
@example({"\ud83d\ude00": 1, "\U0001f600": 2})
@example([10**4299, 10**4300, -(10**4300), 2**14_284, 2**14_283])
def test_a_value_comes_back_identical(value: Any) -> None:
    text = encode(value, where="value")
    assert text.isascii() and text.isprintable()
    assert identical(decode(text), value)
    assert encode(decode(text), where="value") == text
    json.loads(text, parse_constant=lambda name: 1 / 0)


@FAST
@given(values)
def test_two_reads_share_no_mutable_object(value: Any) -> None:
    text = encode([value], where="value")
    first, second = decode(text), decode(text)
    assert first is not second
    assert not mutable_ids(first) & mutable_ids(second)


def mutable_ids(value: Any) -> set[int]:
    if isinstance(value, dict):
        return {id(value)}.union(*map(mutable_ids, value.values()))
    if isinstance(value, list | tuple):
        own = {id(value)} if isinstance(value, list) else set()
        return own.union(*map(mutable_ids, value))
    return {id(value)} if isinstance(value, set | Basket) else set()


@FAST
@given(values, st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_the_text_but_not_the_value(value: Any, random: Any) -> None:
    text = encode(value, where="value")
    shuffled = encode(shuffle(value, random), where="value")
    assert same_value(text, shuffled)
    assert summarize(text) == summarize(shuffled)


def shuffle(value: Any, random: Any) -> Any:
    """An equal value whose dicts have another order."""
    if type(value) in (list, tuple):
        return type(value)(shuffle(member, random) for member in value)
    if type(value) is dict:
        pairs = [(key, shuffle(member, random)) for key, member in value.items()]
        random.shuffle(pairs)
        return dict(pairs)
    return value


lookalikes = st.sampled_from(
    [1, True, 1.0, Decimal(1), Decimal("1.0"), "1", b"1", (1,), (True,), 0, False, 0.0, -0.0, None, "", (), b""]
)


@FAST
@given(st.one_of(lookalikes, hashables), st.one_of(lookalikes, hashables))
def test_values_are_the_same_exactly_if_they_are_identical(one: Any, other: Any) -> None:
    texts = encode([one], where="value"), encode([other], where="value")
    assert same_value(*texts) == identical(one, other)


@FAST
@given(st.sets(hashables, max_size=6), st.randoms(use_true_random=False))
def test_equal_sets_have_equal_text(value: set[Any], random: Any) -> None:
    members = list(value)
    random.shuffle(members)
    assert encode(set(members), where="value") == encode(value, where="value")
    assert encode(frozenset(members), where="value") == encode(frozenset(value), where="value")


TAGS = [*READERS, "$type:test.Level", "$type:test.Foreign", "$type:os.system", "$type:", "$"]
json_texts = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(texts, inner, max_size=3),
        st.builds(
            lambda tag, payload: {tag: payload},
            st.sampled_from(TAGS),
            inner,
        ),
    ),
    max_leaves=12,
).map(json.dumps)


@settings(max_examples=600, deadline=None)
@given(st.one_of(json_texts, st.text(characters)))
@example("[" * 100_000)
@example('{"a":' * 100_000)
@example("[" * 100_000 + "]" * 100_000)
@example('{"$datetime":{"at":"2024-01-01T00:00:00","zone":"../../etc/passwd"}}')
@example('{"$datetime":{"at":"2024-01-01T00:00:00","fold":true}}')
@example("NaN")
@example("9" * 4301)
@example("")
@example("@")
@example("@zlib:")
@example('{"$set":[[1]]}')
@example('{"$ref":["x"]}')
def test_any_stored_text_is_read_or_refused(text: str) -> None:
    assert isinstance(summarize(text), str)
    assert isinstance(describe_failure(text), dict)
    for read in (decode, to_tagged, lambda text: to_tagged(text, globs=["*a*"]), lambda text: same_value(text, "1")):
        try:
            value = read(text)
        except UndecodableValue as error:
            assert len(str(error)) < 700
        else:
            to_plain(value)


@FAST
@given(values, st.data())
def test_a_damaged_text_is_read_or_refused(value: Any, data: st.DataObject) -> None:
    text = encode(value, where="value")
    at = data.draw(st.integers(0, len(text) - 1))
    damage = data.draw(st.sampled_from(["", "]", "}", '"', "[", "{", "\\", "0", "$", "e", ","]))
    for broken in (text[:at], text[:at] + damage + text[at + 1 :]):
        assert isinstance(summarize(broken), str)
        try:
            decode(broken)
        except UndecodableValue:
            continue


@FAST
@given(values)
def test_plain_form_is_json_that_utf8_can_send(value: Any) -> None:
    plain = to_plain(value)
    body = json.dumps(plain, ensure_ascii=False, allow_nan=False).encode()
    assert json.loads(body) == plain
    assert to_plain(plain) == plain
    assert redact(value, []) == plain


@FAST
@given(st.dictionaries(texts, values, max_size=3), st.dictionaries(hashables, values, max_size=3))
def test_a_redacted_value_shows_no_secret(inside: dict[str, Any], around: dict[Any, Any]) -> None:
    secret = "S3CRET-xyz"
    value = {**around, "data": [(inside, {"My_Password": [secret, {1: secret}]})]}
    masked = json.dumps(redact(value, ["*password*"]))
    assert secret not in masked
    assert secret in secrets_in(value, ["*password*"])
    tagged = json.dumps(to_tagged(encode(value, where="value"), globs=["*password*"]))
    assert secret not in tagged


@FAST
@given(texts, st.lists(texts, max_size=3), st.integers(1_000, 9_000))
def test_any_error_text_is_recorded_within_the_limit(message: str, notes: list[str], limit: int) -> None:
    error = ValueError(message * 50)
    for note in notes:
        error.add_note(note)
    text = encode_failure(error, limit=limit, step="shop.charge")
    assert len(text) <= limit and text.isascii()
    record = decode_failure(text)
    assert record["type"] == "builtins.ValueError" and record["step"] == "shop.charge"
    assert record["lineage"] == ["builtins.ValueError", "builtins.Exception", "builtins.BaseException"]


@FAST
@given(values, st.integers(0, 400))
def test_the_size_limit_is_exact(value: Any, limit: int) -> None:
    size = len(encode(value, where="value"))
    if size <= limit:
        assert len(encode(value, where="value", limit=limit)) == size
        return
    try:
        encode(value, where="the value", limit=limit)
    except PayloadTooLarge as error:
        assert "the value" in str(error) and str(limit) in str(error)
    else:
        raise AssertionError(f"{size} bytes passed a limit of {limit}")


containers = st.sampled_from(
    [
        lambda inner: [inner],
        lambda inner: {"key": inner},
        lambda inner: (inner,),
        lambda inner: {1: inner},
        lambda inner: Point(inner),
        lambda inner: Foreign(inner),
        lambda inner: Basket(inner),
    ]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(containers, min_size=1, max_size=5), st.integers(190, 210), st.booleans())
def test_nesting_is_limited_at_200_levels_for_every_kind_of_container(kinds: Any, depth: int, leaf: bool) -> None:
    value: Any = Decimal(1) if leaf else "leaf"
    for level in range(depth):
        value = kinds[level % len(kinds)](value)
    if depth <= 200:
        assert identical(decode(encode(value, where="value")), value)
        json.dumps(to_plain(value))
        return
    try:
        encode(value, where="value")
    except UnserializableValue as error:
        assert "200 levels" in str(error) and len(str(error)) < 500
    else:
        raise AssertionError(f"{depth} levels passed")
