"""Context: the first parameter of a workflow. What is not behind ``ctx.`` runs again at every turn.

Every operation takes one position on every path. A position that has a record is answered from it; otherwise
the operation is carried out and recorded.
"""

from __future__ import annotations

import hashlib
import logging
import random
import uuid
from collections.abc import Callable, MutableMapping
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from django_durable.authoring.attempt import Attempts, raise_recorded
from django_durable.authoring.options import check_tags
from django_durable.authoring.place import Where, entered
from django_durable.authoring.step import Step, as_step
from django_durable.durations import aware, seconds
from django_durable.engine.session import Session
from django_durable.engine.transitions import leave
from django_durable.errors import SignalTimeout
from django_durable.models.columns import check_name
from django_durable.payloads import decode, encode, encode_failure

P = ParamSpec("P")
R = TypeVar("R")
Duration = float | timedelta


def operation(method: Callable[Concatenate[Context, P], R]) -> Callable[Concatenate[Context, P], R]:
    """Run a method of the context as engine code, on the turn's own thread only."""

    @wraps(method)
    def checked(self: Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._session.check_usable()
        with entered(Where.ENGINE, self._session):
            return method(self, *args, **kwargs)

    return checked


class Context:
    """One turn's context. Made by the engine; valid in its own thread and for its own turn only."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._row = session.claim.row
        self.log: logging.LoggerAdapter[logging.Logger] = ReplayAwareLog(session)

    # -- what is known ---------------------------------------------------------------------------------------

    @property
    def id(self) -> uuid.UUID:
        """The execution's id."""
        return self._session.claim.id

    @property
    def key(self) -> str | None:
        """The key it was started with."""
        key: str | None = self._row["key"]
        return key

    @property
    def run(self) -> int:
        """The number of this run in its chain, from 1."""
        return int(self._row["run"])

    @property
    def tenant(self) -> str:
        """The tenant, ``''`` for none."""
        return str(self._row["tenant"])

    @property
    def version(self) -> str:
        """The workflow's version that this run keeps."""
        return str(self._row["version"])

    @property
    def turn(self) -> int:
        """A number that grows with every intent of this execution; not a position, not for branching."""
        return int(self._row["revision"])

    @property
    def is_replaying(self) -> bool:
        """Whether the next operation is answered from the history."""
        return self._session.replaying

    @property
    def scheduled_for(self) -> datetime | None:
        """The time that the start asked for, where it asked for one."""
        moment: datetime | None = self._row["run_after"]
        return moment

    @property
    def history_size(self) -> int:
        """How many positions have been taken so far."""
        return self._session.position

    # -- steps -----------------------------------------------------------------------------------------------

    @overload
    def step(self, step: Step[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def step(self, step: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @operation
    def step(self, step: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a step once and return its recorded result, now and at every replay.

        Raises ``StepFailed`` once its attempts are used up; ``UnserializableValue`` for arguments that cannot
        be stored.
        """
        declared = as_step(step)
        position, record = self._session.enter("step", declared.name)
        if record is not None and record.status == "completed":
            return decode(record.encoded_output or "null")
        if record is not None and record.status == "failed":
            raise_recorded(declared.name, record.encoded_error, record.attempt, position)
        arguments = encode((args, kwargs), where=f"arguments of step {declared.name!r}")
        return Attempts(self._session, declared, position, record, arguments).run()

    # -- time ------------------------------------------------------------------------------------------------

    @operation
    def sleep(self, duration: Duration) -> None:
        """Wait without a worker. The end is stored once, as an absolute time."""
        length = seconds(duration, name="duration")
        self._sleep(lambda: self._session.claim.now() + timedelta(seconds=length))

    @operation
    def sleep_until(self, moment: datetime) -> None:
        """Wait without a worker until an aware time; a past one yields at once."""
        until = aware(moment, name="moment")
        self._sleep(lambda: until)

    def _sleep(self, until: Callable[[], datetime]) -> None:
        session = self._session
        position, record = session.enter("sleep", "")
        if record is not None and record.status == "completed":
            return
        wake_at = record.wake_at if record is not None and record.wake_at is not None else until()
        if session.claim.now() >= wake_at:
            changes = {"status": "completed", "wake_at": wake_at, "finished_at": session.claim.now()}
            session.record(record, position, "sleep", "", changes)
            return
        pages = session.pages()
        if record is None:
            changes = {"status": "pending", "wake_at": wake_at, "started_at": session.claim.now()}
            pages = session.pages_with(None, position, "sleep", "", changes)
        session.leave(lambda p: leave.suspend(session.claim, p, wake_at=wake_at), pages)

    @operation
    def now(self) -> datetime:
        """The plane's clock, aware, UTC; the same at every replay."""
        return self._instant("now", "", self._session.claim.now)

    @operation
    def random(self) -> float:
        """A number in [0, 1), the same at every replay; derived from the run's secret seed, not written."""
        return random.Random(self._derived("random")).random()

    @operation
    def uuid(self) -> uuid.UUID:
        """A random UUID, the same at every replay; derived from the run's secret seed, not written."""
        return uuid.UUID(bytes=self._derived("uuid")[:16], version=4)

    def _derived(self, kind: str) -> bytes:
        position = self._session.enter_unwritten(kind)
        return hashlib.sha256(f"{self._row['seed']}:{kind}:{position}".encode()).digest()

    # -- messages --------------------------------------------------------------------------------------------

    @operation
    def wait_for_signal(self, name: str, timeout: Duration | None = None, until: datetime | None = None) -> Any:
        """The next unread signal of this name, in order of acceptance, also one from before.

        Raises ``SignalTimeout`` at the deadline, which is stored once when the wait is first reached.
        """
        check_name(name, "signal name")
        limit = self._limit(timeout, until)
        session = self._session
        position, record = session.enter("signal", name)
        if record is not None and record.status == "completed":
            return decode(record.encoded_output or "null")
        if record is not None and record.status == "failed":
            raise SignalTimeout(f"no signal {name!r} arrived in time", position=position)
        wake_at = record.wake_at if record is not None else limit()
        letter = session.wait(record, position, "signal", name, [f"signal:{name}"], wake_at, _late(name))
        if letter is None:
            raise SignalTimeout(f"no signal {name!r} arrived in time", position=position)
        return decode(letter.payload)

    def _limit(self, timeout: Duration | None, until: datetime | None) -> Callable[[], datetime | None]:
        if timeout is not None and until is not None:
            raise ValueError("give timeout or until, not both")
        if until is not None:
            moment = aware(until, name="until")
            return lambda: moment
        if timeout is None:
            return lambda: None
        length = seconds(timeout, name="timeout")
        return lambda: self._session.claim.now() + timedelta(seconds=length)

    @operation
    def breakpoint(self, label: str = "") -> None:
        """Pause until an operator's ``resume``."""
        check_name(label, "label", empty=True)
        session = self._session
        position, record = session.enter("breakpoint", label)
        if record is not None and record.status == "completed":
            return
        pages = session.pages()
        if record is None:
            changes = {"status": "pending", "started_at": session.claim.now()}
            pages = session.pages_with(None, position, "breakpoint", label, changes)
        session.leave(lambda p: leave.pause_here(session.claim, p), pages)

    # -- what others can see ---------------------------------------------------------------------------------

    @operation
    def set_value(self, key: str, value: Any) -> None:
        """Publish a value, readable from outside as ``execution.value(key)`` once it is recorded."""
        check_name(key, "key")
        encoded = encode(value, where=f"value {key!r}")
        position, record = self._session.enter("value", key)
        if record is None:
            self._session.keep(position, "value", key, encoded)

    @operation
    def set_tags(self, /, **tags: str | int | bool) -> None:
        """Merge searchable attributes into the execution's tags."""
        checked = check_tags(dict(tags))
        position, record = self._session.enter("tags", "")
        if record is None:
            self._session.set_tags(position, checked, encode(checked, where="tags"))

    def _instant(self, kind: str, name: str, make: Callable[[], R]) -> R:
        """A value that is made once and rides along with the next append."""
        position, record = self._session.enter(kind, name)
        if record is not None:
            made: R = decode(record.encoded_output or "null")
            return made
        encoded = encode(make(), where=f"ctx.{kind}()")
        self._session.keep(position, kind, name, encoded)
        stored: R = decode(encoded)
        return stored


def _late(name: str) -> str:
    return encode_failure(SignalTimeout(f"no signal {name!r} arrived in time"))


class ReplayAwareLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that is silent while the body only repeats what it did before."""

    def __init__(self, session: Session) -> None:
        super().__init__(logging.getLogger(f"django_durable.workflow.{session.claim.row['workflow']}"), {})
        self._session = session

    def isEnabledFor(self, level: int) -> bool:
        """Whether a line of this level is written now."""
        return not self._session.replaying and super().isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Say which execution speaks."""
        return f"[{self._session.claim.id}] {msg}", kwargs
