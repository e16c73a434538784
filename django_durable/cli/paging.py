"""Positions: where the next page of rows begins that each plane numbers by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any
from urllib.parse import quote, unquote

from django_durable.cli.exits import usage
from django_durable.cli.options import Options
from django_durable.planes.places import Answers, Place

__all__ = ["Positions", "merged"]

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """The last row shown of each place, by its label: ``12`` for one place, ``north:12,south:40`` for several."""

    places: Sequence[Place]
    given: Mapping[str, int]

    @classmethod
    def read(cls, options: Options, places: Sequence[Place]) -> Positions:
        """What ``--after`` says of these places. Raises the usage error where it says nothing of the kind."""
        text = options.text("after")
        if text is None:
            return cls(places=places, given={})
        if ":" in text:
            return cls(places=places, given=dict(_position(part, text) for part in text.split(",")))
        if len(places) > 1:
            raise usage("--after must be what the page before said, NAME:ID for each plane")
        return cls(places=places, given={places[0].label: options.number("after") or 0})

    def of(self, place: Place) -> int | None:
        """The last row shown of this place; ``None`` where none was."""
        return self.given.get(place.label)

    def behind(self, page: Rows) -> str:
        """What ``--after`` takes for the next page."""
        if len(self.places) == 1:
            return str(page[-1]["id"])
        last = {**self.given, **{row["plane"]: row["id"] for row in page}}
        return ",".join(f"{quote(name, safe='')}:{number}" for name, number in last.items())


def merged(answers: Answers[Rows], when: Callable[[dict[str, Any]], Any], *, reverse: bool = False) -> Rows:
    """The rows of all places by time. Each place's stay in their own order, which its next page goes on from."""
    return list(merge(*(found for _place, found in answers.found), key=when, reverse=reverse))


def _position(part: str, text: str) -> tuple[str, int]:
    name, _colon, number = part.rpartition(":")
    if not (name and number.isascii() and number.isdigit()):
        raise usage(f"--after must be a number, or NAME:ID for each plane, not {text!r}")
    return unquote(name), int(number)
