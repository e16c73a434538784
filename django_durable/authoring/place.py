"""Where the current code runs: in a workflow body, in a step body, in the engine, or in none of them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

from django.db import connections

import django_durable
from django_durable.errors import DirectCall, DurableError


class Where(Enum):
    """The kinds of code that run during a turn."""

    BODY = "a workflow body"
    STEP = "a step body"
    ENGINE = "the engine"


class Breakable(Protocol):
    """A turn, or an attempt elsewhere, that a wrong call ends."""

    broken: DurableError | None

    def abandon(self, why: str) -> NoReturn:
        """End without another write."""


@dataclass(frozen=True, slots=True)
class Place:
    """Whose code runs, and in which turn."""

    where: Where
    session: Breakable


current: ContextVar[Place | None] = ContextVar("django_durable_place", default=None)

_OWN = str(Path(django_durable.__file__).parent)
_DJANGO = str(Path(sys.modules["django"].__file__ or "").parent)


@contextmanager
def entered(where: Where, session: Breakable) -> Iterator[None]:
    """Run a block as this kind of code."""
    token = current.set(Place(where, session))
    try:
        yield
    finally:
        current.reset(token)


def refuse_in_body(what: str, instead: str) -> None:
    """Raise ``DirectCall`` when called from a workflow body; the turn then ends ``blocked``."""
    place = current.get()
    if place is None or place.where is not Where.BODY:
        return
    place.session.broken = DirectCall(f"{caller()}: {what} was called from a workflow body; {instead}")
    raise place.session.broken


def caller() -> str:
    """``file:line`` of the nearest frame that is neither ours nor Django's."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_OWN, _DJANGO)):
            return f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return "unknown place"


@contextmanager
def guarded_queries(policy: str) -> Iterator[None]:
    """While a body runs, refuse (or report) every query that does not come from a step or from ``ctx``."""
    if policy == "allow":
        yield
        return
    # An object of its own: the wrappers of a turn within a turn must not be taken for each other.
    guard = partial(_refuse_query if policy == "refuse" else _warn_of_query)
    guarded = list(connections.all())
    for connection in guarded:
        connection.execute_wrappers.append(guard)
    try:
        yield
    finally:
        for connection in guarded:
            if guard in connection.execute_wrappers:
                connection.execute_wrappers.remove(guard)


def _refuse_query(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    refuse_in_body("a database query", "it would run again at every turn: put it into a step")
    return execute(sql, params, many, context)


def _warn_of_query(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    place = current.get()
    if place is not None and place.where is Where.BODY:
        warnings.warn(
            f"{caller()}: a database query in a workflow body runs again at every turn; put it into a step",
            RuntimeWarning,
            stacklevel=2,
        )
    return execute(sql, params, many, context)
