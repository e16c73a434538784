"""What runs elsewhere: how a call is begun apart from the turn, and how its end becomes a value or an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django_durable.authoring.attempt import Attempts
from django_durable.authoring.call import Call
from django_durable.authoring.dispatched import pack
from django_durable.authoring.operations.base import Base
from django_durable.authoring.recorded_outcome import value_of
from django_durable.authoring.step import Step
from django_durable.authoring.workflow import Workflow
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine import elsewhere
from django_durable.engine.journal import Record, row_for
from django_durable.engine.standing import step_intent
from django_durable.engine.transitions.family import start_only_child
from django_durable.engine.transitions.fan_in import at
from django_durable.engine.transitions.queue_expiry import expire_in_queue
from django_durable.engine.transitions.start import Order
from django_durable.errors import ChildFailed, StepFailed, StepTimeout
from django_durable.models.checkpoint import WHOLE
from django_durable.payloads import apply_codecs

LEAST_LOOK_SECONDS = 1.0
"""Attempts that are yet to be dispatched are looked for at most so often."""


class Elsewhere(Base):
    """What ``step`` with a queue, ``submit``, ``child`` and ``map`` have in common."""

    def _prepare(self, call: Call[Any]) -> Order | str:
        """What is stored of a call, before any codec: whatever is wrong with it shows before a position is taken."""
        if isinstance(call.target, Workflow):
            now = self._session.claim.now
            return call.target.order_of_child(call.args, call.kwargs, str(self._row["tenant"]), now)
        return pack(call.target, call.args, call.kwargs)

    def _begin(self, position: int, call: Call[Any], prepared: Order | str) -> None:
        """Start a call elsewhere: its pending checkpoint, and its hint or its execution, in one transaction."""
        session = self._session
        claim = session.claim
        row = row_for(claim, position, call.kind, call.name, "pending", queued_at=claim.now())
        if isinstance(prepared, Order):
            row["started_at"] = row["queued_at"]
            order = coded(prepared)
            elsewhere.start_elsewhere(
                session, [row], lambda: start_only_child(claim.using, claim.row, position, order)
            )
            return
        queue = queue_of(call)
        row |= {"encoded_input": apply_codecs(prepared), "queue": queue}
        intent = step_intent(claim.row, position, WHOLE, 1, queue)
        elsewhere.start_elsewhere(session, [row], lambda: SpineWork(claim.using).publish(intent).run())

    def _outcome(self, position: int, call: Call[Any]) -> Any:
        """The value of what was begun at a position, once it has ended. Raises its failure."""
        self._await_all({position: call})
        return value_of(self._session.history[position], call.name)

    def _await_all(self, calls: dict[int, Call[Any]]) -> None:
        """Wait until everything at these positions has ended."""
        while pending := [p for p in calls if not self._session.history[p].is_over]:
            if self._session.only_follows:
                self._session.stop_body()
            if self._expire_queued((self._session.history[p], calls[p]) for p in pending):
                continue
            elsewhere.await_results(
                self._session,
                pending,
                all_ended,
                awaiting=[[at(p) for p in pending]],
                wake_at=self._first_expiry((self._session.history[p], calls[p]) for p in pending),
            )

    # -- waiting to be picked up -----------------------------------------------------------------------------

    def _first_expiry(self, begun: Iterable[tuple[Record, Call[Any]]]) -> datetime | None:
        """When the first of these attempts may have waited too long to be picked up.

        One that is yet to be dispatched, the next of one that is under way among them, is dispatched without this
        turn: it is looked for again when the first of them could have waited long enough.
        """
        now = self._session.claim.now()
        moments = (
            expiry_of(record, call) or now + timedelta(seconds=max(limit, LEAST_LOOK_SECONDS))
            for record, call in begun
            if record.status == "pending" and (limit := queue_timeout_of(call)) is not None
        )
        return min(moments, default=None)

    def _expire_queued(self, begun: Iterable[tuple[Record, Call[Any]]]) -> bool:
        """Fail the attempts that have waited too long to be picked up; whether there were any."""
        session = self._session
        now = session.claim.now()
        late = [(record, call) for record, call in begun if (moment := expiry_of(record, call)) and moment <= now]
        for record, call in late:
            step = call.target
            assert isinstance(step, Step)
            error = StepTimeout(
                f"step {step.name!r} was not picked up within its queue_timeout of {step.options.queue_timeout} s",
                clock="queue_timeout",
            )
            attempts = Attempts(session, step, record.position, record, "null", item=record.item)
            due_at = attempts.next_due(error, record.attempt + 1)
            changes, _told = attempts.failure(error, record.attempt + 1, due_at, None)
            queue = step.options.queue or ""
            elsewhere.change_elsewhere(
                session,
                lambda r=record, c=changes, d=due_at, q=queue: expire_in_queue(session.claim, r, c, d, q),  # type: ignore[misc]
            )
        if late:
            session.learn(elsewhere.look(session, sorted({record.position for record, _call in late})))
        return bool(late)


@contextmanager
def cut_at(position: int) -> Iterator[None]:
    """A failure that shows here was no news to what stands before: a retry keeps that."""
    try:
        yield
    except (StepFailed, ChildFailed) as failed:
        failed.cut = position
        raise


def expiry_of(record: Record, call: Call[Any]) -> datetime | None:
    """When an attempt that nobody has picked up yet fails for that; ``None``: never, or it has been."""
    if record.status != "pending" or record.kind != "step" or record.queued_at is None:
        return None
    limit = queue_timeout_of(call)
    if limit is None or record.begun > record.attempt:
        return None
    since = record.queued_at if record.wake_at is None else max(record.queued_at, record.wake_at)
    return since + timedelta(seconds=limit)


def coded(order: Order) -> Order:
    """The order as it is stored."""
    return replace(order, encoded_input=apply_codecs(order.encoded_input))


def queue_of(call: Call[Any]) -> str:
    """The queue that a step names; ``""``: the execution's."""
    return (call.target.options.queue if isinstance(call.target, Step) else None) or ""


def queue_timeout_of(call: Call[Any]) -> float | None:
    """How many seconds an attempt may wait to be picked up."""
    return call.target.options.queue_timeout if isinstance(call.target, Step) else None


def all_ended(records: Sequence[Record]) -> bool:
    """Whether none of these is under way."""
    return all(record.status != "pending" for record in records if record.item == WHOLE)
