"""The kinds of value that a setting can have: how each is read, and in words what it accepts.

A reader returns the value as ``Config`` keeps it, or raises ``TypeError`` for a wrong type and ``ValueError``
for a wrong value. Their texts are not shown: a problem is told with the kind's own words, which the checks
translate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, TypeVar
from urllib.parse import urlsplit

from django_durable.conf.marking import gettext_noop
from django_durable.durations import as_timedelta, seconds

T = TypeVar("T")
Dotted = str | type
Policy = Literal["refuse", "warn", "allow"]
Untenanted = Literal["control-plane", "refuse"]

TERMINAL: Final = ("completed", "continued", "failed", "cancelled", "timed_out", "dead")
LONGEST_PAUSE: Final = 1_000_000_000  # about 31 years: beyond 292 years a thread's wait overflows
LARGEST_INTEGER: Final = 2_147_483_647  # what an integer column holds on every backend
LARGEST_TEXT: Final = 1_000_000_000  # SQLite's default limit for one value; PostgreSQL's is just above it
LONGEST_NAME: Final = 255


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind of value: its reader, and what it accepts in words marked for translation."""

    read: Callable[[object], T]
    expected: str


def _above_zero(value: object) -> float:
    if not (found := _zero_or_more(value)):
        raise ValueError
    return found


def _zero_or_more(value: object) -> float:
    return seconds(value, name="value", maximum=LONGEST_PAUSE)


def _span(value: object) -> timedelta:
    if not (found := as_timedelta(value, name="value")):
        raise ValueError
    return found


def _whole(value: object, *, least: int, most: int = LARGEST_INTEGER) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    if not least <= value <= most:
        raise ValueError
    return int(value)


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    if not value.strip() or len(value) > LONGEST_NAME:
        raise ValueError
    return value


def _one_of(value: object, *, choices: tuple[str, ...]) -> Any:
    if not isinstance(value, str):
        raise TypeError
    if value not in choices:
        raise ValueError
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _module(value: object) -> str:
    name = _name(value)
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError
    return name


def _path(value: object) -> str:
    """``package.name``, by its form only: nothing is imported here."""
    name = _module(value)
    if "." not in name:
        raise ValueError
    return name


def _path_or_class(value: object) -> Dotted:
    return value if isinstance(value, type) else _path(value)


def _url(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError
    return value


def _retry(value: object) -> object:
    # The Retry class lives on a higher floor: authoring interprets the value, and a check tries to build it.
    if isinstance(value, (str, bytes, int, float, complex, list, tuple, set, frozenset, timedelta, type)):
        raise TypeError
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value


def _planes(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise TypeError
    return MappingProxyType({_name(plane): _name(alias) for plane, alias in value.items()})


def _retention(value: object) -> Mapping[str, timedelta | None]:
    """The period of each terminal status that has one, ``"*"`` spelt out; and of each workflow or pattern of them.

    A status without a period is left out (for ever); a workflow's ``None`` stays, since it beats its status.
    """
    if not isinstance(value, Mapping):
        raise TypeError
    chosen = {_retained(key): _or_none(_span)(span) for key, span in value.items()}
    # A status that is None on purpose must not fall back to "*": presence decides.
    periods = {status: chosen.get(status, chosen.get("*")) for status in TERMINAL}
    workflows = {key: span for key, span in chosen.items() if key not in ("*", *TERMINAL)}
    return MappingProxyType({**{status: span for status, span in periods.items() if span is not None}, **workflows})


def _retained(key: object) -> str:
    """A status, ``"*"``, or what has a dot or is a pattern: anything else is a status with a slip in it."""
    name = _name(key)
    if name not in ("*", *TERMINAL) and not set(name) & set(".*?["):
        raise ValueError
    return name


def _or_none(inner: Callable[[object], T]) -> Callable[[object], T | None]:
    return lambda value: None if value is None else inner(value)


def _each(inner: Callable[[object], T]) -> Callable[[object], tuple[T, ...]]:
    def read(value: object) -> tuple[T, ...]:
        # A bare string would be read letter by letter; a set has no order.
        if not isinstance(value, (list, tuple)):
            raise TypeError
        return tuple(inner(item) for item in value)

    return read


PAUSE = Kind(_above_zero, gettext_noop("a number of seconds or a timedelta, above 0 and finite"))
PAUSE_OR_ZERO = Kind(_zero_or_more, gettext_noop("a number of seconds or a timedelta, 0 or more and finite"))
SPAN = Kind(_span, gettext_noop("a number of seconds or a timedelta, above 0 and finite"))
COUNT = Kind(partial(_whole, least=1), gettext_noop("a whole number from 1 to 2147483647"))
COUNT_OR_ZERO = Kind(partial(_whole, least=0), gettext_noop("a whole number from 0 to 2147483647"))
SIZE = Kind(partial(_whole, least=1, most=LARGEST_TEXT), gettext_noop("a whole number of bytes from 1 to 1000000000"))
NAME = Kind(_name, gettext_noop("a text of 1 to 255 characters"))
SWITCH = Kind(_switch, gettext_noop("True or False"))
NAMES = Kind(_each(_name), gettext_noop("a list of texts of 1 to 255 characters"))
MODULE = Kind(_or_none(_module), gettext_noop("a module name, or None"))
PATH = Kind(_or_none(_path), gettext_noop("a dotted path, or None"))
PATHS = Kind(_each(_path), gettext_noop("a list of dotted paths"))
CLASSES = Kind(_or_none(_each(_path_or_class)), gettext_noop("a list of dotted paths or classes, or None"))
URL = Kind(_or_none(_url), gettext_noop("an http or https URL without query and fragment, or None"))
RETRY = Kind(_retry, gettext_noop("a Retry, a dict of its options, or None"))
PLANES = Kind(_planes, gettext_noop("a dict of plane name to database alias"))
RETENTION = Kind(
    _retention,
    gettext_noop(
        "a dict of a terminal status, a workflow's name or pattern (shop.*), or '*' to a duration above 0, or to None"
        " for ever"
    ),
)
POLICY: Kind[Policy] = Kind(
    partial(_one_of, choices=("refuse", "warn", "allow")), gettext_noop("one of 'refuse', 'warn', 'allow'")
)
UNTENANTED: Kind[Untenanted] = Kind(
    partial(_one_of, choices=("control-plane", "refuse")), gettext_noop("one of 'control-plane', 'refuse'")
)
