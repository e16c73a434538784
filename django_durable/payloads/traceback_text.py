"""The traceback of an exception as text: frames and source lines, no local variables, bounded in every direction.

The standard formatter follows causes, contexts and groups as far as they go; a chain of 100,000 exceptions is a
real thing (a retry loop that raises from the last error), and must not end the worker that records it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from traceback import StackSummary, walk_tb
from types import TracebackType
from typing import Final

from django_durable.errors import qualified_name

__all__ = ["format_traceback", "message_of"]

CHAIN_LIMIT: Final = 8
COUNTED_LIMIT: Final = 1_000
FIRST_FRAMES: Final = 10
LAST_FRAMES: Final = 30
GROUP_LIMIT: Final = 8
GROUP_DEPTH: Final = 3
NOTES_LIMIT: Final = 20

CAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
CONTEXT: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"


def message_of(exc: BaseException) -> str:
    """``str(exc)`` as an exact str; if that raises, a text that says so."""
    try:
        return str.__str__(str(exc))
    except Exception as error:
        return f"<no message: str() of the exception raised {type(error).__name__}>"


def format_traceback(exc: BaseException) -> str:
    """Like the interpreter's, the root cause first; what is left out is counted."""
    links, more = collect_chain(exc)
    parts = [f"[… {more} earlier exceptions …]\n\n"] if more else []
    for index in range(len(links) - 1, -1, -1):
        parts += format_one(links[index], 0)
        if index:
            parts.append(CAUSE if links[index - 1].__cause__ is links[index] else CONTEXT)
    return "".join(parts)


def collect_chain(exc: BaseException) -> tuple[list[BaseException], int]:
    """The exception and what led to it, nearest first; and how many more there are, counted up to a limit."""
    links: list[BaseException] = []
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen and len(seen) < COUNTED_LIMIT:
        seen.add(id(current))
        if len(links) < CHAIN_LIMIT:
            links.append(current)
        context = None if current.__suppress_context__ else current.__context__
        current = current.__cause__ or context
    return links, len(seen) - len(links)


def format_one(exc: BaseException, depth: int) -> Iterator[str]:
    if exc.__traceback__ is not None:
        yield "Traceback (most recent call last):\n"
        yield from format_frames(exc.__traceback__)
    yield f"{qualified_name(type(exc))}: {message_of(exc)}\n"
    notes = getattr(exc, "__notes__", None)
    for note in islice(notes, NOTES_LIMIT) if isinstance(notes, list | tuple) else ():
        yield f"{note}\n"
    if isinstance(exc, BaseExceptionGroup):
        yield from format_members(exc, depth)


def format_members(group: BaseExceptionGroup[BaseException], depth: int) -> Iterator[str]:
    members = group.exceptions
    if depth >= GROUP_DEPTH:
        yield f"  [… {len(members)} exceptions …]\n"
        return
    for number, member in enumerate(members[:GROUP_LIMIT], start=1):
        yield f"  +---- {number}\n"
        for line in "".join(format_one(member, depth + 1)).splitlines(keepends=True):
            yield f"  | {line}"
    if len(members) > GROUP_LIMIT:
        yield f"  [… {len(members) - GROUP_LIMIT} exceptions …]\n"


def format_frames(traceback: TracebackType) -> Iterator[str]:
    """The outermost frames and the innermost ones; extracting a frame keeps its place, never its variables."""
    frames = walk_tb(traceback)
    first = list(islice(frames, FIRST_FRAMES))
    rest = list(frames)
    last, between = rest[-LAST_FRAMES:], len(rest) - LAST_FRAMES
    yield from StackSummary.extract(iter(first)).format()
    if between > 0:
        yield f"  [… {between} frames …]\n"
    yield from StackSummary.extract(iter(last)).format()
