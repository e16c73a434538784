"""``docs/reference/settings.md`` lists every key with its default, and no other."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

import django_durable
from django_durable.conf import KINDS, Config

REFERENCE = Path(django_durable.__file__).parent.parent / "docs" / "reference" / "settings.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| `(.+?)` \| (.+) \|$", re.MULTILINE)
ROWS = ROW.findall(REFERENCE.read_text("utf-8"))


def test_every_key_has_exactly_one_row() -> None:
    assert sorted(key for key, _, _ in ROWS) == sorted(KINDS)


def test_no_row_of_a_key_is_malformed() -> None:
    started = re.findall(r"^\| `([A-Z_]+)`", REFERENCE.read_text("utf-8"), re.MULTILINE)
    assert started == [key for key, _, _ in ROWS]


@pytest.mark.parametrize(("key", "default"), [(key, default) for key, default, _ in ROWS])
def test_the_documented_default_is_the_one_in_the_code(key: str, default: str) -> None:
    others = {name: getattr(Config(), name.lower()) for name in KINDS}
    documented = eval(default, {"__builtins__": {}, "timedelta": timedelta, **others})
    assert documented == getattr(Config(), key.lower())
    assert type(documented) is type(getattr(Config(), key.lower())) or documented == {}


@pytest.mark.parametrize("key", [key for key, kind in KINDS.items() if "one of" in kind.expected])
def test_the_choices_of_a_key_are_documented(key: str) -> None:
    (meaning,) = [meaning for name, _, meaning in ROWS if name == key]
    for choice in re.findall(r"'([\w-]+)'", KINDS[key].expected):
        assert f'`"{choice}"`' in meaning
