"""Run the Python blocks of one Markdown page: ``python -m tests.docs.page docs/tutorial/first.md``.

The blocks share a module, in order, as if they were one file; it belongs to the app ``shop``, and
``shop.models`` is importable under that short name. A block right below ``<!-- snippet: skip-run why -->`` is
compiled and not run. Line numbers of a traceback are those of the page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

__all__ = ["Block", "blocks", "run"]

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^\n`]*)$")
SKIP = re.compile(r"^\s*<!-- snippet: skip-run (?P<reason>\S.*?) -->\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block; ``line`` is that of its first line of code, ``skip`` why it is not run."""

    language: str
    code: str
    line: int
    skip: str = ""


def blocks(text: str) -> Iterator[Block]:
    """Every fenced block of a page; ``ValueError`` for one that is not closed."""
    lines = text.split("\n")
    at, above = 0, ""
    while at < len(lines):
        opening = FENCE.match(lines[at])
        if opening is None:
            above = lines[at] if lines[at].strip() else above
            at += 1
            continue
        start, indent = at + 1, len(opening["indent"])
        at = start
        while at < len(lines) and lines[at].strip() != opening["fence"]:
            at += 1
        if at == len(lines):
            raise ValueError(f"The block that begins on line {start} is not closed by {opening['fence']}.")
        skipped = SKIP.match(above)
        yield Block(
            language=opening["info"].strip(),
            code="\n".join(line[indent:] for line in lines[start:at]) + "\n",
            line=start + 1,
            skip=skipped["reason"] if skipped else "",
        )
        at, above = at + 1, ""


def run(path: Path) -> int:
    """Run the page and return how many blocks ran; what a block raises is raised."""
    module = ModuleType(f"testproject.shop.{re.sub(r'[^0-9a-z]+', '_', path.stem.lower())}_page")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    count = 0
    for block in blocks(path.read_text()):
        if block.language != "python":
            continue
        code = compile("\n" * (block.line - 1) + block.code, str(path), "exec", dont_inherit=True)
        if not block.skip:
            exec(code, module.__dict__)  # noqa: S102 - the page is ours
            count += 1
    return count


def call_the_shop_by_its_short_name() -> None:
    """``from shop.models import Order``, as in the reader's project, gives the test project's module."""
    for name, module in list(sys.modules.items()):
        if name == "testproject.shop" or name.startswith("testproject.shop."):
            sys.modules[name.removeprefix("testproject.")] = module


def main() -> None:
    import django

    django.setup()
    call_the_shop_by_its_short_name()
    print(run(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
