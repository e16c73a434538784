"""Two stored texts are the same value, or they are not; no class has to be known for the answer."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from django_durable.errors import UndecodableValue
from django_durable.payloads import encode, same_value


def text(value: Any) -> str:
    return encode(value, where="value")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
        ({1: "x", (2,): {"a": 1, "b": 2}}, {(2,): {"b": 2, "a": 1}, 1: "x"}),
        ([{1: 2, 3: {5: 6, 7: 8}}], [{3: {7: 8, 5: 6}, 1: 2}]),
        ({"$a": 1}, {"$a": 1}),
        ({1, 2, "x"}, {"x", 2, 1}),
    ],
)
def test_the_order_of_keys_does_not_matter(one: Any, other: Any) -> None:
    assert same_value(text(one), text(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (0, False),
        (None, False),
        ("1", 1),
        ([1], (1,)),
        ({1}, frozenset({1})),
        ({1}, [1]),
        ({}, []),
        (Decimal("1.0"), Decimal("1.00")),
        (Decimal(1), 1),
        ({1: "x"}, {True: "x"}),
        ({1: "x"}, {"1": "x"}),
        ({"a": None}, {}),
        ([1, 2], [2, 1]),
        ((1, {"a": 1}), (1, {"a": 1.0})),
        ("\U0001f600", "\ud83d\ude00"),
        ({"$decimal": "1"}, Decimal(1)),
    ],
)
def test_type_and_form_do(one: Any, other: Any) -> None:
    assert not same_value(text(one), text(other))
    assert not same_value(text({"in": [one]}), text({"in": [other]}))


def test_unknown_classes_are_compared_by_what_is_stored() -> None:
    assert same_value('{"$type:gone.Money":{"a":1,"b":2}}', '{"$type:gone.Money":{"b":2,"a":1}}')
    assert not same_value('{"$type:gone.Money":{"a":1}}', '{"$type:gone.Other":{"a":1}}')
    assert same_value('{"$set":[{"$type:gone.A":{"x":1,"y":2}},1]}', '{"$set":[1,{"$type:gone.A":{"y":2,"x":1}}]}')


def test_a_broken_text_is_the_same_as_itself_only() -> None:
    assert same_value("{broken", "{broken")
    with pytest.raises(UndecodableValue):
        same_value("{broken", "{}")
    assert not same_value('{"$dict":[1]}', '{"$dict":7}')
