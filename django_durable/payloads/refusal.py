"""Why a value cannot be stored, and where in it: travels up the walk, which adds the path on the way."""

from __future__ import annotations

from django.utils.functional import Promise

SHOWN_KEY = 40
SHOWN_PARTS = 6


class Refusal(Exception):
    """Inside this package only; ``encode`` makes an ``UnserializableValue`` of it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.parts: list[str] = []
        super().__init__(reason)

    def at(self, part: str) -> None:
        """Add the next outer step of the path."""
        self.parts.append(part)

    @property
    def path(self) -> str:
        """Like ``$.items[3]['x']``: what one would write in Python after the value; a long one is cut inside."""
        parts = self.parts[::-1]
        if len(parts) > 2 * SHOWN_PARTS:
            parts = [*parts[:SHOWN_PARTS], " … ", *parts[-SHOWN_PARTS:]]
        return "$" + "".join(parts)


def subscript(key: object) -> str:
    """A dict key as a step of a path. Keys of other kinds show as their type: they may be data."""
    if isinstance(key, str) and not isinstance(key, Promise):
        return f"[{key[:SHOWN_KEY]!r}…]" if len(key) > SHOWN_KEY else f"[{str(key)!r}]"
    if isinstance(key, int) and type(key) in (int, bool) and abs(key) < 10**SHOWN_KEY:
        return f"[{key!r}]"
    return f"[<{type(key).__name__}>]"
