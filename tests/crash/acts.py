"""Act: one thing that one process does in a scenario, and how the world tells whether it was done.

An act whose process was killed, or that saw an error, is done again by another process if it was not done: what
a careful client does. An act that returned without an error must have been done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, InterfaceError, transaction

from django_durable import ExecutionConflict, InvalidTransition, clock
from django_durable.authoring.workflow import Workflow
from django_durable.conf import config
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import drop_broken_connection
from django_durable.engine.lease_state import Lease
from django_durable.models import DispatchHint, Execution, Message, OperatorNote
from django_durable.planes import behind, breaker
from django_durable.runtime.claim_run import run_claim
from django_durable.runtime.claiming import claim_pass, terms_of
from django_durable.runtime.tick import INTERVALS
from django_durable.runtime.unknown_work import block_unknown
from testproject.shop.models import Order
from tests.crash.life import Life, Violation
from tests.crash.places import here, rows
from tests.crash.stage import stage

if TYPE_CHECKING:
    from tests.crash.run import Run

__all__ = [
    "Act",
    "cancel",
    "later",
    "move",
    "pause",
    "resume",
    "retry",
    "send",
    "start",
    "work",
]

MOST_TURNS = 60
ELSEWHERE = "crash.elsewhere"
"""The queue of steps that run elsewhere."""


@dataclass(frozen=True, slots=True)
class Act:
    """``do`` is run as a process; ``done`` is asked of the committed state."""

    role: str
    do: Callable[[Run], Any]
    done: Callable[[Run], bool]


def _using(flow: Workflow[..., Any], **options: Any) -> Workflow[..., Any]:
    """The workflow with these options, for the tenant of this run."""
    return flow.using(tenant=here.tenant, **options) if here.apart else flow.using(**options)


# -- starters ------------------------------------------------------------------------------------------------


def start(flow: Workflow[..., Any], *args: Any, **options: Any) -> Act:
    """Start the run's execution under the run's key."""
    return Act(
        "starter",
        lambda run: _using(flow, key=run.mark, **options).start(run.mark, *args),
        lambda run: run.found(),
    )


def start_unkeyed(flow: Workflow[..., Any], *args: Any) -> Act:
    """Start without a key: the client looks for its correlation id before it tries again."""
    return Act(
        "starter",
        lambda run: _using(flow, correlation_id=run.mark).start(run.mark, *args),
        lambda run: run.found(),
    )


def start_with_order(flow: Workflow[..., Any]) -> Act:
    """Start in the transaction that creates an order."""

    def do(run: Run) -> None:
        with transaction.atomic(using=here.plane):
            rows(Order).create(payment_id=f"{run.mark}-own")
            _using(flow, key=run.mark).start(run.mark)
            rows(Order).filter(payment_id=f"{run.mark}-own").update(status="paid")

    def done(run: Run) -> bool:
        paid = rows(Order).filter(payment_id=f"{run.mark}-own", status="paid").count()
        if paid != int(run.found()):
            raise Violation(f"{paid} orders and {int(run.found())} executions: the start was not atomic with them")
        return run.found()

    return Act("starter", do, done)


def start_rolled_back(flow: Workflow[..., Any]) -> Act:
    """Start in a savepoint and in a transaction that are both rolled back: nothing may ever be seen of it."""

    def do(run: Run) -> None:
        try:
            with transaction.atomic(using=here.plane):
                _using(flow, key=f"{run.mark}-never").start(run.mark)
                raise _Regret
        except _Regret:
            pass
        with transaction.atomic(using=here.plane):
            try:
                with transaction.atomic(using=here.plane):
                    _using(flow, key=f"{run.mark}-never").start(run.mark)
                    raise _Regret
            except _Regret:
                pass
            rows(Order).create(payment_id=f"{run.mark}-own")

    def done(run: Run) -> bool:
        if rows(Execution).filter(key=f"{run.mark}-never").exists() or rows(DispatchHint).exists():
            raise Violation("a start outlived its transaction")
        return rows(Order).filter(payment_id=f"{run.mark}-own").exists()

    return Act("starter", do, done)


class _Regret(Exception):
    """Rolls a transaction back."""


def start_again(flow: Workflow[..., Any]) -> Act:
    """The same key again is the same execution; another input is a conflict that leaves the transaction usable."""

    def do(run: Run) -> None:
        with transaction.atomic(using=here.plane):
            again = _using(flow, key=run.mark).start(run.mark)
            if again.pk != run.execution_id() or again.is_new:
                raise Violation("a second start with one key made a second execution")
            try:
                _using(flow, key=run.mark).start("something else")
            except ExecutionConflict:
                pass
            else:
                raise Violation("another input under the same key was accepted")
            rows(Order).create(payment_id=f"{run.mark}-again")

    return Act("starter", do, lambda run: rows(Order).filter(payment_id=f"{run.mark}-again").exists())


def restart(flow: Workflow[..., Any]) -> Act:
    """A new chain takes the key over from the one that has ended."""

    def done(run: Run) -> bool:
        return rows(Execution).filter(key=run.mark).count() == 2

    return Act("starter", lambda run: _using(flow, key=run.mark, on_conflict="restart").start(run.mark), done)


# -- senders -------------------------------------------------------------------------------------------------


def send(payload: Any, *, dedup_key: str | None = None) -> Act:
    """Send the signal ``go``; the client looks for its own payload before it tries again."""

    def done(run: Run) -> bool:
        text = f'"{payload}"'
        stored = rows(Message).filter(execution_id=run.execution_id(), payload=text).count()
        if stored > 1:
            raise Violation(f"{stored} messages are stored of one signal")
        return stored == 1

    return Act("sender", lambda run: run.execution().signal("go", payload, dedup_key=dedup_key), done)


def send_twice(payload: Any) -> Act:
    """The same signal twice under one deduplication key, in one transaction with an order."""

    def do(run: Run) -> None:
        with transaction.atomic(using=here.plane):
            first = run.execution().signal("go", payload, dedup_key="one")
            rows(Order).create(payment_id=f"{run.mark}-sent")
            if run.execution().signal("go", payload, dedup_key="one") != first:
                raise Violation("a repeated dedup_key was stored again")

    def done(run: Run) -> bool:
        messages = rows(Message).filter(execution_id=run.execution_id(), dedup_key="one").count()
        orders = rows(Order).filter(payment_id=f"{run.mark}-sent").count()
        if messages != orders:
            raise Violation(f"{messages} messages and {orders} orders: the signal was not atomic with them")
        return messages == 1

    return Act("sender", do, done)


def signal_or_start(flow: Workflow[..., Any], payload: Any) -> Act:
    """One call: the execution and its first signal."""

    def done(run: Run) -> bool:
        sent = run.found() and rows(Message).filter(execution_id=run.execution_id()).exists()
        if sent != run.found():
            raise Violation("signal_or_start was not atomic")
        return sent

    return Act("starter", lambda run: _using(flow, key=run.mark).signal_or_start("go", payload, run.mark), done)


# -- operators -----------------------------------------------------------------------------------------------


def _verb(name: str, do: Callable[[Execution[Any]], Any]) -> Act:
    """An operator's verb; a second try that is refused because the first one worked is not an error."""

    def attempt(run: Run) -> None:
        before = _noted(run, name)
        try:
            do(_found(run))
        except InvalidTransition:
            if before == _noted(run, name) == 0:
                raise

    return Act("operator", attempt, lambda run: _noted(run, name) > 0)


def _found(run: Run) -> Execution[Any]:
    """The execution as a process finds it that knows no more than its id."""
    return Execution.objects.locate(run.execution_id()) if here.apart else run.execution()


def _noted(run: Run, verb: str) -> int:
    return rows(OperatorNote).filter(execution_id=run.execution_id(), verb=verb).count()


def cancel() -> Act:
    """Cancel."""

    def attempt(run: Run) -> None:
        execution = _found(run)
        won = execution.cancel(actor="ann")
        if not execution.is_terminal or (won and execution.status != "cancelled"):
            raise Violation(f"cancel returned {won} and it is {execution.status}")

    return Act("operator", attempt, lambda run: run.execution().is_terminal)


def cancel_and_undo() -> Act:
    """Cancel what has undo steps, or may have: the call wins, and it ends once they have run."""

    def attempt(run: Run) -> None:
        execution = run.execution()
        if execution.cancel(actor="ann") and execution.cancel_requested_at is None:
            raise Violation(f"cancel returned True and it is {execution.status}")

    return Act("operator", attempt, lambda run: run.execution().cancel_requested_at is not None)


def pause() -> Act:
    """Pause."""
    return _verb("pause", lambda execution: execution.pause(actor="ann", reason="lunch"))


def resume() -> Act:
    """Resume."""
    return _verb("resume", lambda execution: execution.resume(actor="ann"))


def retry() -> Act:
    """Retry a failed run, after the world was repaired."""

    def do(execution: Execution[Any]) -> None:
        stage.repaired = True
        execution.retry(actor="ann", reason="repaired")

    return _verb("retry", do)


def move(version: str) -> Act:
    """Let it go on with another version."""
    return _verb("move", lambda execution: execution.move_to_version(version, actor="ann", reason="better"))


# -- workers and time ----------------------------------------------------------------------------------------


def drain(stop: Any = None) -> int:
    """Claim and run until nothing is due, as the embedded worker's loop does; how many turns."""
    turns = 0
    for _ in range(MOST_TURNS):
        if stop is not None and stop.is_set():
            return turns
        terms = terms_of(limit=5, queues=(config().default_queue, ELSEWHERE))
        try:
            claims, touched = claim_pass(here.spine, terms)
        except (DatabaseError, InterfaceError):
            for alias in here.aliases:
                drop_broken_connection(alias)
            continue
        if not touched:
            return turns
        for claimed in claims:
            run_claim(claimed, UntoldLease(claimed), stop)
            turns += 1
    raise Violation("the work does not end")


def drain_and_sweep(stop: Any = None) -> int:
    """``drain``; what a death between plane and spine left is for the sweeps that a worker runs beside it."""
    # The memory of a process that is gone; the processes under test share this one's.
    breaker._open.clear()
    behind._looked.clear()
    turns = drain(stop)
    if here.apart:
        for plane in here.planes:
            for name in ("outbox", "dangling", "actions"):
                INTERVALS[name][1](plane)
        turns += drain(stop)
    # Who was still to be admitted when the process that had started it died.
    if sum(INTERVALS["singletons"][1](plane) for plane in (here.planes if here.apart else (here.plane,))):
        turns += drain(stop)
    return turns


class UntoldLease(Lease):
    """A lease that nobody renews and of whose loss nobody tells: the least that a turn may rely on."""

    __slots__ = ("_life",)

    def __init__(self, claimed: Claimed) -> None:
        super().__init__(claimed.hint_id, claimed.token, time.monotonic() + claimed.lease_seconds)
        self._life = Life.current()

    @property
    def held(self) -> bool:
        """Until its own clock ends it."""
        return super().held and not (self._life is not None and self._life.outlived)


def work() -> Act:
    """A worker, until nothing is due."""

    def idle(run: Run) -> bool:
        return not rows(DispatchHint).filter(state=0, due_at__lte=clock.read_now(here.spine)).exists()

    return Act("worker", lambda run: drain_and_sweep(stage.stop), idle)


def work_until_stopped() -> Act:
    """A worker that is told to stop on its way."""
    return Act("worker", lambda run: drain(stage.stop), lambda run: True)


def sweep_unknown() -> Act:
    """The sweep that blocks what no code here knows."""

    def done(run: Run) -> bool:
        return bool(run.execution().status == "blocked")

    return Act("sweeper", lambda run: block_unknown(here.plane), done)


def expect_status(status: str) -> Act:
    """A look: this is what it must be by now."""

    def look(run: Run) -> None:
        if run.execution().status != status:
            raise Violation(f"it is {run.execution().status}, not {status}")

    return Act("reader", look, lambda run: True)


def later(hours: float) -> timedelta:
    """Between two acts: that much time passes."""
    return timedelta(hours=hours)
