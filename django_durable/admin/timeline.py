"""Timeline: when what happened in a run, as the numbers of a drawing. The template makes an SVG of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext as _

from django_durable.models import Execution

__all__ = ["Span", "Timeline", "draw"]

WIDTH: Final = 1000
LABEL: Final = 220
"""Room for the names, to the left of the bars."""
RIGHT: Final = 20
TOP: Final = 22
ROW: Final = 20
THIN_ROW: Final = 6
MOST_LABELLED: Final = 50
"""Rows that have room for a name; more are drawn as a pattern."""
LEAST: Final = 2.0
"""No bar is narrower than this: what took a millisecond in a run of days is still there."""
NAME: Final = 30
WAITS: Final = ("sleep", "signal", "update", "event", "approval", "callback", "any", "breakpoint")
CHILDREN: Final = ("child", "map", "future", "gather")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One position: what it is, and from when to when. ``ended`` is ``None`` while it goes on."""

    place: str
    kind: str
    name: str
    status: str
    began: datetime | None
    ended: datetime | None
    due: datetime | None
    failures: Sequence[datetime]
    is_undo: bool

    @property
    def look(self) -> str:
        """Its class in the style sheet: what failed shows as that, whatever it is."""
        if self.status == "failed":
            return "failed"
        if self.is_undo:
            return "undo"
        if self.kind in CHILDREN:
            return "child"
        return "wait" if self.kind.removeprefix("wait_").removeprefix("for_") in WAITS else "step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One line of the drawing; lengths are in its own units, ready to be written."""

    y: int
    text_y: int
    x: str
    width: str
    height: int
    look: str
    label: str
    title: str
    ahead_x: str = ""
    ahead_width: str = ""
    """From now to when it is due."""
    failures: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The drawing."""

    width: int
    height: int
    left: int
    right: int
    bars: list[Bar]
    began: datetime
    ended: datetime
    now_x: str
    """Where now is; empty for a run that has ended."""
    summary: str


def draw(execution: Execution[Any], spans: Iterable[Span]) -> Timeline | None:
    """The drawing of these positions; ``None`` where none of them has a time."""
    shown = [span for span in spans if span.began or span.ended]
    if not shown:
        return None
    now = None if execution.is_terminal else timezone.now()
    first = min(span.began or span.ended or execution.created_at for span in shown)
    last = max([now or execution.finished_at or first, *(span.ended for span in shown if span.ended)])
    scale = Scale(first, last, _furthest(shown, last, first, now))
    is_dense = len(shown) > MOST_LABELLED
    height = THIN_ROW if is_dense else ROW
    bars = [_bar(span, scale, now, TOP + number * height, is_dense) for number, span in enumerate(shown)]
    return Timeline(
        width=WIDTH,
        height=TOP + len(bars) * height + 8,
        left=LABEL,
        right=WIDTH - RIGHT,
        bars=bars,
        began=first,
        ended=scale.last,
        now_x=scale.text(now) if now else "",
        summary=_("%(count)d positions in %(time)s") % {"count": len(bars), "time": duration(last - first)},
    )


class Scale:
    """Times to places."""

    def __init__(self, first: datetime, last: datetime, furthest: datetime) -> None:
        self.first, self.last = first, max(last, furthest)
        self._seconds = max((self.last - first).total_seconds(), 0.001)

    def at(self, moment: datetime) -> float:
        """The place of a moment, at the edge where it lies outside."""
        part = (moment - self.first).total_seconds() / self._seconds
        return LABEL + min(max(part, 0.0), 1.0) * (WIDTH - LABEL - RIGHT)

    def text(self, moment: datetime) -> str:
        """The same as written into an attribute, in every language."""
        return written(self.at(moment))


def _furthest(spans: Iterable[Span], last: datetime, first: datetime, now: datetime | None) -> datetime:
    """How far ahead is drawn: to what is due, but never so far that what has been becomes a dot."""
    due = [span.due for span in spans if now and span.status == "pending" and span.due and span.due > last]
    return min(max(due), last + (last - first) / 3) if due else last


def _bar(span: Span, scale: Scale, now: datetime | None, y: int, is_dense: bool) -> Bar:
    began = span.began or span.ended or scale.first
    ended = span.ended or now or scale.last
    x = scale.at(began)
    width = max(scale.at(ended) - x, LEAST)
    ahead = scale.at(span.due) - (x + width) if span.due and now and span.status == "pending" else 0.0
    time = duration(max(ended - began, timedelta(0)))
    label = f"{span.place} {span.name.rpartition('.')[2] or span.kind}"
    return Bar(
        y=y,
        text_y=y + 13,
        x=written(x),
        width=written(width),
        height=THIN_ROW - 1 if is_dense else ROW - 6,
        look=span.look,
        label="" if is_dense else (label if len(label) <= NAME else f"{label[:NAME]}…"),
        title=f"{span.place} {span.name} · {span.kind} · {span.status} · {time}",
        ahead_x=written(x + width) if ahead > 0 else "",
        ahead_width=written(ahead) if ahead > 0 else "",
        failures=[scale.text(at) for at in span.failures],
    )


def written(length: float) -> str:
    return f"{length:.1f}"


def duration(time: timedelta) -> str:
    """In the two largest units that it has; milliseconds where it is short."""
    seconds = time.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
