"""Sources of ``ctx.wait_any``: what can be waited for beside others.

A source is a signal's name, or an object with ``offer(number)``, which says how to wait for it: the channel of the
mailbox that it is sent to, or a ``Source`` of the engine that has it elsewhere, and how what came is recorded.
``update(…)``, ``event(…)`` and callbacks are such objects; so can be anything that wakes an execution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from django_durable.engine.events import Topic
from django_durable.engine.messages import Letter
from django_durable.engine.transitions.wait import Recorded, Source, as_it_came
from django_durable.models.columns import check_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """How to wait for one source. ``label`` stands for it in the history: code that asks for others is refused."""

    label: str
    channel: str = ""
    source: Source | None = None
    record: Callable[[Letter], Recorded] = as_it_came


@runtime_checkable
class Offering(Protocol):
    """What ``wait_any`` takes beside names of signals."""

    def offer(self, number: int) -> Offer:
        """How to wait for it as the source of this number."""


@dataclass(frozen=True, slots=True)
class UpdateSource:
    """The next update of a name; made by ``update``."""

    name: str

    def offer(self, number: int) -> Offer:
        """In the mailbox."""
        return Offer(label=f"update:{self.name}", channel=f"update:{self.name}")


@dataclass(frozen=True, slots=True)
class EventSource:
    """The oldest event of a name that was not taken, with all of a match; made by ``event``."""

    name: str
    match: Mapping[Any, Any] | None = None

    def offer(self, number: int) -> Offer:
        """Among the tenant's events."""
        return Offer(label=f"event:{self.name}", source=Topic.of(self.name, self.match, number))


def update(name: str) -> UpdateSource:
    """For ``ctx.wait_any``: the next update of this name."""
    return UpdateSource(check_name(name, "update name"))


def event(name: str, match: Mapping[Any, Any] | None = None) -> EventSource:
    """For ``ctx.wait_any``: the next event of this name whose payload has all of ``match``."""
    return EventSource(check_name(name, "event name"), check_match(match))


def check_match(match: Mapping[Any, Any] | None) -> Mapping[Any, Any] | None:
    """A mapping, or none. Raises ``TypeError``."""
    if match is not None and not isinstance(match, Mapping):
        raise TypeError(f"match must be a dict of items that the payload must have, not {type(match).__name__}")
    return match


def offer_of(source: Any, number: int) -> Offer:
    """How to wait for one of the sources. Raises ``TypeError`` for what is none."""
    if isinstance(source, str):
        check_name(source, "signal name")
        return Offer(label=f"signal:{source}", channel=f"signal:{source}")
    if isinstance(source, Offering) and not isinstance(source, type):
        return source.offer(number)
    raise TypeError(
        f"wait_any() takes names of signals, update(…), event(…), callbacks and futures, not {type(source).__name__}"
    )
