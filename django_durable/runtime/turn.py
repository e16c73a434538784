"""A turn: call the workflow from the top, answer from the journal, go on from there, settle or suspend."""

from __future__ import annotations

import inspect
import json
import logging
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from django_durable.authoring.arguments import bound_arguments
from django_durable.authoring.outcome import BodyQuit, quits
from django_durable.authoring.registry import find_workflow
from django_durable.authoring.workflow import Workflow
from django_durable.conf import config
from django_durable.engine.claimed import Claimed
from django_durable.engine.lease_state import Lease
from django_durable.engine.ownership import Abandoned, Suspended
from django_durable.engine.persistence import last_word
from django_durable.engine.session import Session
from django_durable.engine.transitions.ending import complete, fail
from django_durable.engine.transitions.recover import abandon_attempt
from django_durable.engine.transitions.undo import Ending, begin_after_failure
from django_durable.errors import (
    BudgetExhausted,
    ChildFailed,
    CodecUnavailable,
    DefinitionChanged,
    DurableError,
    NonDeterminismError,
    StepFailed,
    SuspensionSwallowed,
    UndecodableValue,
    UnknownWorkflow,
    WaitTimeout,
)
from django_durable.payloads import decode, encode, encode_failure, secrets_in
from django_durable.planes.selection import selected
from django_durable.runtime.body import block, call_body
from django_durable.runtime.undo import undo

logger = logging.getLogger("django_durable")

RECORDED = (StepFailed, ChildFailed, WaitTimeout, BudgetExhausted)
"""Errors that stand at a position of the history."""


def run_turn(claim: Claimed, lease: Lease, stop: threading.Event | None = None) -> None:
    """Drive one claimed execution as far as it goes. Returns normally whatever became of it.

    Raises only what ends the process it runs in (``KeyboardInterrupt``), after giving the execution up.
    """
    session = Session(claim, lease, stop)
    with selected(claim.using):
        try:
            _run(session)
        except (Suspended, Abandoned):
            session.hand_over()
        except CodecUnavailable as error:
            # An outage, which costs nothing but time.
            session.outage = error
            session.hand_over()
        except BodyQuit as quit:
            _give_up(session, quit.cause)


def _run(session: Session) -> None:
    claim = session.claim
    try:
        workflow = find_workflow(claim.row["workflow"], claim.row["version"])
        _check_pin(session, workflow)
    except (UnknownWorkflow, DefinitionChanged) as error:
        block(session, error)
    session.load()
    try:
        arguments = bound_arguments(workflow, decode(claim.row["encoded_input"]))
    except (UndecodableValue, TypeError) as error:
        _fail_unstarted(session, error)
    if session.undoing:
        undo(session, workflow, arguments)
    _settle(session, workflow, arguments)


def _fail_unstarted(session: Session, error: UndecodableValue | TypeError) -> None:
    """The stored input does not fit: final, except where undo steps wait for the code that it fits."""
    if session.undoing:
        block(session, error if isinstance(error, DurableError) else NonDeterminismError(str(error)))
    _fail(session, error)


def _check_pin(session: Session, workflow: Workflow[..., Any]) -> None:
    if workflow.options.pin and session.claim.row["source_digest"] != workflow.source_digest:
        raise DefinitionChanged(
            f"workflow {workflow.name!r} version {workflow.version!r} is pinned and its source differs from the one"
            " that this run started with; deploy that source again, accept this one"
            " (`resume ID --accept-code`), or cancel the run"
        )


def _settle(session: Session, workflow: Workflow[..., Any], arguments: inspect.BoundArguments) -> None:
    try:
        result = call_body(session, workflow, arguments)
        if session.broken is not None:
            raise session.broken
        if session.suspended:
            raise SuspensionSwallowed
        session.check_all_used()
        encoded = encode(result, where=f"result of workflow {workflow.name!r}")
    except BaseException as error:
        _end_by(session, error)
    else:
        session.leave(lambda pages: complete(session.claim, pages, output=encoded, family=session.has_elsewhere))


def _end_by(session: Session, error: BaseException) -> None:
    """What an exception out of the body means."""
    if isinstance(error, (Suspended, Abandoned)):
        if session.broken is not None:
            block(session, session.broken)
        raise error
    if session.broken is not None:
        block(session, session.broken)
    if isinstance(error, CodecUnavailable):
        raise error
    if isinstance(error, BodyQuit):
        raise error
    if quits(error):
        raise BodyQuit(error) from error
    if session.suspended and not isinstance(error, SuspensionSwallowed):
        swallowed = SuspensionSwallowed()
        swallowed.__cause__ = error
        _fail_swallowed(session, swallowed)
    if isinstance(error, SuspensionSwallowed):
        _fail_swallowed(session, error)
    _fail(session, error)


def _fail_swallowed(session: Session, error: SuspensionSwallowed) -> None:
    """The suspension has been committed and swallowed: end the run, whoever may hold it now."""
    from django_durable.engine.transitions.swallow import fail_suspended

    if not (session.lease.lost or session.ending or session.outage):
        fail_suspended(session.claim, encode_failure(error))
    raise Suspended


def _fail(session: Session, error: BaseException) -> None:
    encoded, ended_by = describe_end(error, _secrets(session))
    if session.undos.due():
        ending = Ending(status="failed", error=encoded, ended_by=ended_by)
        session.leave(lambda pages: begin_after_failure(session.claim, pages, ending, family=session.has_elsewhere))
    positions = json.dumps(ended_by)
    session.leave(
        lambda pages: fail(
            session.claim, pages, error=encoded, failed_positions=positions, family=session.has_elsewhere
        )
    )


def _secrets(session: Session) -> Iterable[str]:
    """What the input holds under redacted keys: masked in error texts too."""
    globs = config().redact
    if not globs:
        return ()
    try:
        return secrets_in(decode(session.claim.row["encoded_input"]), globs)
    except UndecodableValue:
        return ()


def describe_end(error: BaseException, secrets: Iterable[str] = ()) -> tuple[str, dict[str, Any]]:
    """The stored error of a run, and which positions ended it.

    For an uncaught ``StepFailed`` the step's original error, with ``step`` and ``attempts`` beside it.
    """
    positions, cuts = [], []
    for cause in _chain(error):
        if isinstance(cause, RECORDED) and cause.position is not None:
            positions.append(cause.position)
            cut = getattr(cause, "cut", None)
            cuts.append(cause.position + 1 if cut is None else cut)
    ended_by: dict[str, Any] = {"positions": sorted(set(positions))}
    if cuts:
        ended_by["from"] = min(cuts)
    if isinstance(error, StepFailed):
        original: dict[str, Any] = {
            "type": error.error_type,
            "message": error.message,
            "traceback": error.traceback_text,
            "lineage": list(error.lineage),
        }
        return encode_failure(error, step=error.step, attempts=error.attempts, **original), ended_by
    return encode_failure(error, secrets=secrets), ended_by


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


def _give_up(session: Session, cause: BaseException) -> None:
    """A body ended the way a process ends: counted like a crash, the execution is due again shortly."""
    name = type(cause).__name__
    logger.warning("a body of execution %s ended with %s; its attempt is abandoned", session.claim.id, name)
    last_word(session, lambda: abandon_attempt(session.claim, name))
    if isinstance(cause, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise cause
