"""A contributor who looks for a rule's test finds it under the name that CONTRIBUTING.md gives."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def named_tests() -> set[str]:
    return set(re.findall(r"`(tests/[\w/]+/test_\w+\.py)`", (ROOT / "CONTRIBUTING.md").read_text()))


def test_every_test_file_that_is_named_exists() -> None:
    names = named_tests()
    assert "tests/unit/test_contributing_names_tests_that_exist.py" in names
    assert [name for name in sorted(names) if not (ROOT / name).is_file()] == []
