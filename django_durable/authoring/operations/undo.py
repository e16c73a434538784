"""Undo: what is to be taken back when a block, or the whole run, comes to nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, Self, overload

from django_durable.authoring.operations.base import Base, engine_code, operation
from django_durable.authoring.outcome import quits
from django_durable.authoring.step import Step, as_step
from django_durable.authoring.undo_attempt import run_undo_steps
from django_durable.engine.journal import Record
from django_durable.engine.session import Session
from django_durable.engine.undos import COMPENSATE, DISCARD, ENDED, SAGA, UNDONE
from django_durable.payloads import decode_failure, encode

P = ParamSpec("P")


class Undo(Base):
    """``ctx.saga``, ``ctx.compensate``, ``ctx.discard_compensations``."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        # Where the saga blocks begin that the body is in, the innermost last.
        self._blocks: list[int] = []

    def saga(self) -> Saga:
        """A block whose undo steps run, last first, when an exception leaves it; a normal end drops them.

        The exception goes on once they are through, with those that failed as its notes. Takes one position, where
        the block ends.
        """
        self._session.check_usable()
        return Saga(self._session, self._blocks)

    @overload
    def compensate(self, step: Step[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None: ...
    @overload
    def compensate(self, step: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None: ...
    @operation
    def compensate(self, step: Any, /, *args: Any, **kwargs: Any) -> None:
        """Register an undo step, of the saga block around it or, outside one, of the whole execution.

        Register it before the step that it undoes, and let it be idempotent: it also runs where that step has not
        begun, or nobody knows how far it came. It runs in the execution's own turn, by its own ``Retry``. Raises
        ``TypeError`` for arguments that the step does not take, ``UnserializableValue`` for those that cannot be
        stored.
        """
        declared = as_step(step)
        inspect.signature(declared.func).bind(*args, **kwargs)
        arguments = encode((args, kwargs), where=f"arguments of undo step {declared.name!r}")
        session = self._session
        position, record = session.enter(COMPENSATE, declared.name)
        if record is None:
            session.keep(position, COMPENSATE, declared.name, None, encoded_input=arguments)
        session.undos.register(position)
        session.registered[position] = declared

    @operation
    def discard_compensations(self) -> None:
        """Drop the undo steps registered so far: of the saga block around it or, outside one, of the execution."""
        # What was inherited from an earlier run of the chain lies below 0.
        start = self._blocks[-1] if self._blocks else min(0, *self._session.undos.registered, 0)
        position, record = self._session.enter(DISCARD, "")
        if record is None:
            self._session.keep(position, DISCARD, "", str(start))
        self._session.undos.drop(start)


class Saga:
    """One block. What passes through while the turn itself ends (a suspension, a lost lease) undoes nothing."""

    def __init__(self, session: Session, blocks: list[int]) -> None:
        self._session = session
        self._blocks = blocks

    def __enter__(self) -> Self:
        self._session.check_usable()
        self._blocks.append(self._session.position)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        session = self._session
        start = self._blocks.pop()
        if error is not None and (quits(error) or session.suspended or session.broken is not None):
            return
        with engine_code(session):
            if error is None:
                self._end(start)
            else:
                self._undo(start, error)

    def _end(self, start: int) -> None:
        session = self._session
        position, record = session.enter(SAGA, ENDED)
        if record is None:
            session.keep(position, SAGA, ENDED, str(start))
        session.undos.drop(start)

    def _undo(self, start: int, error: BaseException) -> None:
        session = self._session
        position, record = session.enter(SAGA, UNDONE)
        if record is None:
            due = session.undos.due(start)
            if due:
                session.flush()
                run_undo_steps(session, due)
            session.keep(position, SAGA, UNDONE, str(start))
        for failed in session.undos.failed(start):
            error.add_note(_told(session.undone[failed]))
        session.undos.drop(start)


def _told(record: Record) -> str:
    failure = decode_failure(record.encoded_error or "")
    return f"undo step {record.name!r} failed: {failure['type']}: {failure['message']}"
