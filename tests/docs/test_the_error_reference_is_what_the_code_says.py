"""``docs/reference/errors.md`` is made from the code; a page that was not made again is noticed."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from tests.services.databases import ROOT


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_page_is_the_generated_one(generate: ModuleType) -> None:
    assert generate.PAGE.read_text() == generate.render(), "run python docs/generate.py"


def test_every_error_that_is_raised_has_a_note_and_no_other(generate: ModuleType) -> None:
    used = {cls.__name__ for cls in generate.all_errors() if generate.is_used(cls)}
    assert set(generate.NOTES) == used


def test_every_error_is_in_the_tree(generate: ModuleType) -> None:
    names = {line.lstrip("│├└─ ") for line in generate.tree(generate.DurableError)}
    assert names == {cls.__name__ for cls in generate.all_errors()}
