"""B82: depth is a normal refusal in every direction, also with a recursion limit that someone has raised."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from django_durable.errors import UndecodableValue, UnserializableValue
from django_durable.payloads import (
    coerce_arguments,
    decode,
    describe_failure,
    encode,
    redact,
    same_value,
    secrets_in,
    summarize,
    to_plain,
    to_tagged,
)


def nest(depth: int, wrap: Any = lambda inner: [inner]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


def nested_text(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + "1" + closing * depth


WRAPS = [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: (inner,), lambda inner: {1: inner}]
BOMBS = [
    ("[", "]"),
    ('{"a":', "}"),
    ('[{"a":', "}]"),
    ('{"$tuple":[', "]}"),
    ('["]",[', "]]"),
    ('["\\"]\\\\",[', "]]"),
    ("[", ""),
]


@pytest.mark.parametrize("wrap", WRAPS)
def test_200_levels_pass_and_201_do_not(wrap: Any) -> None:
    assert decode(encode(nest(200, wrap), where="value")) == nest(200, wrap)
    for depth in (201, 500, 5_000, 100_000):
        with pytest.raises(UnserializableValue, match="nested deeper than 200 levels") as info:
            encode(nest(depth, wrap), where="value")
        assert len(str(info.value)) < 400


def test_a_value_that_contains_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    loop: dict[str, Any] = {}
    loop["self"] = {"again": loop}
    for value in (ring, loop, [(ring,)]):
        with pytest.raises(UnserializableValue, match="contains itself"):
            encode(value, where="value")


@pytest.mark.parametrize(("opening", "closing"), BOMBS)
@pytest.mark.parametrize("depth", [500, 5_000, 100_000])
def test_a_stored_bomb_is_refused_by_every_reader(opening: str, closing: str, depth: int) -> None:
    text = nested_text(depth, opening, closing)
    for read in (decode, to_tagged, lambda text: same_value(text, "1")):
        with pytest.raises(UndecodableValue, match=r"nested deeper|no JSON"):
            read(text)
    assert summarize(text).startswith("unreadable, ")
    assert describe_failure(text)["type"] == "django_durable.errors.UndecodableValue"


def test_brackets_inside_strings_do_not_count() -> None:
    value = ["[" * 1_000, "{" * 1_000, '"[' * 500, "\\" * 3, '\\"[', ["]" * 1_000, {"]}": "[{" * 500}]] * 20
    assert decode(encode(value, where="value")) == value


def test_deep_values_show_instead_of_raising() -> None:
    value = nest(5_000)
    assert "…" in str(to_plain(value))
    assert redact(value, ["x"]) == to_plain(value)
    assert secrets_in(nest(200, WRAPS[1]), ["a"]) == frozenset()


@dataclass
class Tree:
    branches: list[Tree]


def test_deep_json_is_a_misfit() -> None:
    def plant(tree: Tree) -> None: ...

    twigs: dict[str, Any] = {"branches": []}
    made = coerce_arguments(plant, {"tree": {"branches": [twigs, twigs]}})
    assert made == {"tree": Tree([Tree([]), Tree([])])}
    with pytest.raises(ValueError, match="parameter 'tree': the value is nested too deeply"):
        coerce_arguments(plant, {"tree": nest(100_000, lambda inner: {"branches": [inner]})})


def test_a_nearly_full_stack_is_an_ordinary_error() -> None:
    text = encode(nest(200), where="value")

    def fill(left: int) -> set[str]:
        if left:
            return fill(left - 1)
        found = set()
        for act in (lambda: encode(nest(200, tuple_of), where="value"), lambda: decode(text)):
            try:
                act()
            except (UnserializableValue, UndecodableValue) as error:
                found.add(str(error))
        return found

    def tuple_of(inner: Any) -> tuple[Any]:
        return (inner,)

    seen: set[str] = set()
    for room in range(60, 500, 20):
        seen |= fill(sys.getrecursionlimit() - stack_depth() - room)
    assert any("call stack is nearly full" in message for message in seen)


def stack_depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    return depth


def test_a_raised_recursion_limit_does_not_end_the_process() -> None:
    code = """
import sys
import django.conf
django.conf.settings.configure()
from django_durable.payloads import decode, encode, same_value, summarize, to_plain
sys.setrecursionlimit(10**7)
outcomes = set()
for opening, closing in [("[", "]"), ('{"a":', "}"), ('["]",[', "]]"), ('{"$set":[', "]}"), ("[", "")]:
    text = opening * 100_000 + "1" + closing * 100_000
    for read in (decode, lambda text: same_value(text, "1")):
        try:
            read(text)
        except ValueError as error:
            outcomes.add(type(error).__name__)
    assert summarize(text).startswith("unreadable")
value = 1
for _ in range(100_000):
    value = [value]
try:
    encode(value, where="value")
except TypeError as error:
    outcomes.add(type(error).__name__)
to_plain(value)
print(sorted(outcomes))
while value != 1:
    value = value.pop()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['UndecodableValue', 'UnserializableValue']"
