"""What the documentation shows is run: every Python block of every page, against a fresh database."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.page import Block, blocks
from tests.services.databases import ROOT, FreshDatabase
from tests.services.project import Project

PAGES = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("README.md"), *(ROOT / "docs").rglob("*.md")])


WITH_PLANES = {Path("docs/how-to/data-planes.md"): ("north", "south")}
"""Pages that need data planes, and which."""


@pytest.mark.parametrize("page", [page for page in PAGES if "```python" in (ROOT / page).read_text()], ids=str)
def test_every_python_block_of_a_page_runs(
    page: Path, project: Project, fresh_database: Callable[[], FreshDatabase]
) -> None:
    for plane in WITH_PLANES.get(page, ()):
        project.add_plane(plane, fresh_database())
    process = project.spawn(
        [sys.executable, "-W", "error", "-m", "tests.docs.page", str(page)],
        name=page.stem,
        DJANGO_SETTINGS_MODULE="tests.docs.settings",
    )
    finished = process.finish(within=120)
    assert finished.code == 0, finished.stderr


def test_there_are_pages() -> None:
    assert Path("docs/index.md") in PAGES


def run(project: Project, tmp_path: Path, text: str, expect: int = 0) -> str:
    page = tmp_path / "page.md"
    page.write_text(text)
    process = project.spawn(
        [sys.executable, "-m", "tests.docs.page", str(page)], DJANGO_SETTINGS_MODULE="tests.docs.settings"
    )
    finished = process.finish()
    assert finished.code == expect, finished.stderr
    return finished.stdout if expect == 0 else finished.stderr


def test_blocks_share_a_module_of_the_shop(project: Project, tmp_path: Path) -> None:
    text = (
        "```python\nfrom shop.models import Order\norder = Order.objects.create()\n```\n"
        "1. indented\n\n   ```python\n   print(order.status, __name__, Order.__module__)\n   ```\n"
    )
    assert run(project, tmp_path, text).split() == [
        "new",
        "testproject.shop.page_page",
        "testproject.shop.models",
        "2",
    ]


def test_a_block_that_raises_fails_with_the_line_of_the_page(project: Project, tmp_path: Path) -> None:
    errors = run(project, tmp_path, "# Title\n\n```python\nfirst = 1\nfirst / 0\n```\n", expect=1)
    assert 'page.md", line 5' in errors
    assert "ZeroDivisionError" in errors


def test_a_skipped_block_is_compiled_only(project: Project, tmp_path: Path) -> None:
    skipped = "<!-- snippet: skip-run it needs a bank -->\n\n```python\n{}\n```\n"
    assert run(project, tmp_path, skipped.format("raise SystemExit(7)")) == "0\n"
    assert "SyntaxError" in run(project, tmp_path, skipped.format("raise SystemExit(7"), expect=1)


def test_only_the_block_right_below_the_comment_is_skipped() -> None:
    text = "<!-- snippet: skip-run why -->\n```python\na\n```\n\n```python\nb\n```\n````text\n```python\n````\n"
    assert list(blocks(text)) == [
        Block(language="python", code="a\n", line=3, skip="why"),
        Block(language="python", code="b\n", line=7),
        Block(language="text", code="```python\n", line=10),
    ]


def test_a_block_that_is_not_closed_is_named() -> None:
    with pytest.raises(ValueError, match="begins on line 2 is not closed"):
        list(blocks("text\n```python\na\n"))
