"""undo: a turn in undo mode. The body is followed as far as its history goes; then its undo steps run, last first.

Following it finds the declared steps, with the options they were registered with. Nothing of it is carried out:
its first operation without an outcome ends it, however the body takes that.
"""

from __future__ import annotations

import inspect
from typing import Any, NoReturn

from django_durable.authoring.outcome import BodyQuit, quits
from django_durable.authoring.place import Where, entered
from django_durable.authoring.registry import find_step
from django_durable.authoring.undo_attempt import run_undo_steps
from django_durable.authoring.workflow import Workflow
from django_durable.engine import mismatch
from django_durable.engine.ownership import Abandoned, Suspended
from django_durable.engine.session import Session
from django_durable.engine.transitions.undo import end_undo
from django_durable.errors import CodecUnavailable, DurableError
from django_durable.runtime.body import block, call_body


def undo(session: Session, workflow: Workflow[..., Any], arguments: inspect.BoundArguments) -> NoReturn:
    """Run the undo steps that have no outcome yet, and end the execution as it was decided."""
    due = session.undos_of_history().due()
    if due:
        _follow(session, workflow, arguments)
        _find_inherited(session, due)
        _check_all_met(session, due)
        with entered(Where.ENGINE, session):
            run_undo_steps(session, due)
    session.leave(lambda _pages: end_undo(session.claim))


def _follow(session: Session, workflow: Workflow[..., Any], arguments: inspect.BoundArguments) -> None:
    try:
        call_body(session, workflow, arguments)
    except CodecUnavailable:
        raise
    except (Suspended, Abandoned, DurableError) as ended:
        if session.lease.lost:
            raise Abandoned("the lease was lost") from ended
    except BodyQuit:
        raise
    except BaseException as error:
        if quits(error):
            raise BodyQuit(error) from error
    if session.outage is not None:
        raise Suspended
    if session.broken is not None:
        block(session, session.broken)
    session.suspended = False


def _find_inherited(session: Session, due: list[int]) -> None:
    """Undo steps that an earlier run of the chain registered are found by name: its body is not called here."""
    for position in due:
        step = find_step(session.history[position].name) if position < 0 else None
        if step is not None:
            session.registered[position] = step


def _check_all_met(session: Session, due: list[int]) -> None:
    unmet = [position for position in due if position not in session.registered]
    if unmet:
        first = session.history[min(unmet)]
        block(session, mismatch.early_end(first) if first.position >= 0 else mismatch.unknown_undo(first))
