"""Base: what every group of operations stands on: the turn's session, and the door into engine code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django_durable.authoring.place import Where, entered
from django_durable.durations import aware, seconds
from django_durable.engine.session import Session
from django_durable.errors import CodecUnavailable
from django_durable.payloads import decode, encode

P = ParamSpec("P")
R = TypeVar("R")
B = TypeVar("B", bound="Base")
Duration = float | timedelta


def operation(method: Callable[Concatenate[B, P], R]) -> Callable[Concatenate[B, P], R]:
    """Run a method of the context as engine code, on the turn's own thread only."""

    @wraps(method)
    def checked(self: B, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._session.check_usable()
        with engine_code(self._session):
            return method(self, *args, **kwargs)

    return checked


@contextmanager
def engine_code(session: Session) -> Iterator[None]:
    """Within it a payload codec that is away ends the turn: no branch of the body is to depend on that."""
    with entered(Where.ENGINE, session):
        try:
            yield
        except CodecUnavailable as error:
            session.await_codec(error)


class Base:
    """One turn's session, and what several groups of operations need."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._row = session.claim.row

    def _limit(self, timeout: Duration | None, until: datetime | None) -> Callable[[], datetime | None]:
        """When a wait times out, computed once it is first reached; ``None``: never."""
        if timeout is not None and until is not None:
            raise ValueError("give timeout or until, not both")
        if until is not None:
            moment = aware(until, name="until")
            return lambda: moment
        if timeout is None:
            return lambda: None
        length = seconds(timeout, name="timeout")
        return lambda: self._session.claim.now() + timedelta(seconds=length)

    def _instant(self, kind: str, name: str, make: Callable[[int], R]) -> tuple[int, R]:
        """A position and its value, which ``make`` makes once of it and which rides along with the next append."""
        position, record = self._session.enter(kind, name)
        if record is not None:
            made: R = decode(record.encoded_output or "null")
            return position, made
        encoded = encode(make(position), where=f"ctx.{kind}()")
        self._session.keep(position, kind, name, encoded)
        stored: R = decode(encoded)
        return position, stored
