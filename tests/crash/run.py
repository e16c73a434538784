"""Run: one pass through a scenario's acts with one fault, its recovery, and what must hold at every stage."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections
from django.db.models import Q

from django_durable import InvalidTransition, PlaneUnavailable, UnknownTenant, clock
from django_durable.models import Checkpoint, DispatchHint, Execution
from django_durable.models.checkpoint import WHOLE
from tests.crash import acts, between, liveness
from tests.crash.acts import Act
from tests.crash.faults import SPINE_LOST, Fault, Mode
from tests.crash.ledger import Ledger
from tests.crash.life import LONGEST, Life, Violation
from tests.crash.places import here, rows
from tests.crash.racer import Racer

__all__ = ["Gate", "Observer", "Run", "place_of"]

T = TypeVar("T")
TRIES = 4
PROMISE_NOTHING = ("worker", "sweeper")
"""Processes that nobody waits for: they isolate what fails and do it at the next pass."""
CONNECTION_LOST = (Mode.ERROR_BEFORE, Mode.ERROR_AFTER, Mode.ERROR_TWICE, Mode.PLANE_DOWN)


def place_of(position: int, item: int, kind: str) -> str:
    """How an idempotency key names the place of a body."""
    if kind == "undo":
        return f"undo.{position}"
    return f"{position}.{item}" if item > WHOLE else str(position)


class Observer:
    """Two untouched connections: one looks at committed state, the other is the worker that recovers."""

    def __init__(self) -> None:
        self._looking, self._working = Racer(*here.aliases), Racer(*here.aliases)

    def see(self, look: Callable[[], T]) -> T:
        """What a look at the committed state shows."""
        return self._looking.run(look)

    def recover(self, gate: Gate | None = None) -> Future[int]:
        """Let every lease lapse, then work until nothing is due; at a gate, stand still once in between."""
        return self._working.begin(_lapse_and_drain, gate)

    def work(self) -> None:
        """Work until nothing is due; who holds a lease keeps it."""
        self._working.run(acts.drain_and_sweep)

    def must_wait(self) -> bool:
        """Whether the recovering worker waits for somebody's lock."""
        return self.see(lambda: connections[here.plane].vendor == "postgresql" and self._working.waits())

    def close(self) -> None:
        """End both threads and their connections."""
        self._looking.close()
        self._working.close()


class Gate:
    """Where the recovering worker stands still: when it has read its first journal and not yet done anything."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        reads_journal = " FROM django_durable_checkpoint WHERE " in sql and "ORDER BY" in sql
        # A transition that looks for undo steps holds locks, which nobody could wait for.
        if reads_journal and not self.reached.is_set() and not context["connection"].in_atomic_block:
            self.reached.set()
            self.opened.wait(LONGEST)
        return result


def _lapse_and_drain(gate: Gate | None) -> int:
    rows(DispatchHint).filter(token__isnull=False).update(due_at="2000-01-01T00:00:00Z")
    with connections[here.plane].execute_wrapper(gate) if gate is not None else nullcontext():
        return acts.drain_and_sweep()


class Run:
    """One run: ``mark`` is its key and the beginning of all its labels."""

    def __init__(
        self,
        mark: str,
        fault: Fault,
        observer: Observer,
        *,
        recover_at_once: bool = True,
        lasting: tuple[str, ...] = ("completed", "failed"),
    ) -> None:
        self.mark = mark
        self.fault = fault
        self.observer = observer
        self.disturbed = 0
        self.broken: Violation | None = None
        self._recover_at_once = recover_at_once
        self._lasting = lasting
        self._done_before: tuple[int, set[tuple[str, str]]] = (0, set())
        self._copies = [between.NOTHING]
        self._spine_is_lost = False
        fault.lose_spine = self._lose_spine

    # -- the acts' view --------------------------------------------------------------------------------------

    def ids(self) -> list[UUID]:
        """The run's executions, found by what the client knows, the newest last."""
        known = Q(key=self.mark) | Q(correlation_id=self.mark) | Q(key__startswith=f"schedule {self.mark}:")
        mine = rows(Execution).filter(known, tenant=here.tenant or "")
        return list(mine.order_by("created_at", "id").values_list("pk", flat=True))

    def found(self) -> bool:
        """Whether there is one."""
        return bool(self.ids())

    def execution_id(self) -> UUID:
        """The newest one's id."""
        return self.ids()[-1]

    def execution(self) -> Execution[Any]:
        """The newest one."""
        return rows(Execution).get(pk=self.execution_id())

    # -- one act ---------------------------------------------------------------------------------------------

    def play(self, script: list[Act | timedelta | Callable[[], None]], sweep_from: int = 0) -> None:
        """Every act in order, each until it is done. The sweep begins with the act of that number."""
        for number, item in enumerate(script):
            if number == sweep_from:
                self.fault.begins_at = len(self.fault.passed)
            if isinstance(item, timedelta):
                clock.shift(item)
            elif isinstance(item, Act):
                self.perform(item)
            else:
                item()
            if self.broken is not None:
                raise self.broken

    def ensure(self, act: Act) -> None:
        """Perform an act that may have been done by the life before this one."""
        if not self.observer.see(lambda: act.done(self)):
            self.perform(act)

    def perform(self, act: Act) -> None:
        """One act, done by as many processes as it takes."""
        try:
            self._perform(act)
        except Violation as violation:
            self.broken = self.broken or violation  # a body may have called: the engine keeps what it raises
            raise

    def _perform(self, act: Act) -> None:
        for _ in range(TRIES):
            self._once(act)
            if self.observer.see(lambda: act.done(self)):
                self.check_now()
                return
        raise Violation(f"the {act.role}'s act does not get done")

    def _once(self, act: Act) -> None:
        if self._spine_is_lost:
            self._rebuild()  # while another process is still in the turn in which that happened
        if self.fault.mode is Mode.SPINE_RESTORED:
            self._copies.append(self.observer.see(between.copy_spine))
        life = Life(self.fault, act.role)
        life.begin(lambda: act.do(self))
        if life.wait():
            self._overtake(life)
        life.join()
        self._judge(life, act)

    def _judge(self, life: Life, act: Act) -> None:
        error = life.error
        if error is None and not life.dead:
            forgotten = act.role in PROMISE_NOTHING or self._spine_is_lost
            if not forgotten and not self.observer.see(lambda: act.done(self)):
                raise Violation(f"the {act.role} was told that it was done, and nothing is there")
        elif not life.dead and not self._must_be_expected(error):
            raise Violation(f"the {act.role} ended with {error!r}") from error
        if life.struck:
            self.disturbed += 1
            if self.fault.down is not None:
                self._go_on_elsewhere()
            if self._spine_is_lost:
                self._rebuild()
            self.check_now()
            self._remember_what_was_done()
            if found := self.observer.see(liveness.doctors_violations):
                raise Violation("; ".join(found))
            if here.apart:
                clock.shift(timedelta(seconds=2))  # past the pause after which a plane is tried again
            if act.role == "mover":
                self.observer.work()
                self.check_now()
            if act.role == "worker" and self._recover_at_once:
                self.observer.recover().result(LONGEST)
                self.check_now()

    def _must_be_expected(self, error: BaseException | None) -> bool:
        if self.fault.mode in SPINE_LOST and isinstance(error, (UnknownTenant, InvalidTransition)):
            return True
        lost = isinstance(error, (DatabaseError, InterfaceError, PlaneUnavailable))
        return lost and self.fault.mode in CONNECTION_LOST

    def _lose_spine(self, mode: Mode) -> None:
        """From here until it is rebuilt nothing holds of the spine."""
        copy = self._copies[-2:][0] if mode is Mode.SPINE_RESTORED else between.NOTHING
        self._spine_is_lost = True
        self.observer.see(lambda: between.replace_spine(copy, keep_placements=mode is Mode.SPINE_RESTORED))

    def _rebuild(self) -> None:
        """An operator's ``tick --rebuild``, and the time after which nobody can be at work any more."""
        self.observer.see(between.rebuild_spine)
        self._spine_is_lost = False
        clock.shift(timedelta(seconds=60))

    def _go_on_elsewhere(self) -> None:
        """While the plane is down another tenant is served on another one; nothing is held against the plane."""
        down = str(self.fault.down)
        started = self.observer.see(lambda: between.start_elsewhere(self.mark, down))
        worker = Life(self.fault, "worker")
        worker.begin(acts.drain)
        worker.wait()
        worker.join()
        self.fault.down = None
        if worker.error is not None:
            raise Violation(f"a worker ended with {worker.error!r} while a plane was down") from worker.error
        self.observer.see(lambda: between.check_elsewhere(started))

    def _overtake(self, life: Life) -> None:
        """While a process stands still its leases lapse and another worker does what is due, as far as it can."""
        token, mode = self.observer.see(self._token), self.fault.mode
        gate = Gate() if mode is Mode.HALF_OVERTAKEN else None
        recovery = self.observer.recover(gate)
        while not (recovery.done() or (gate is not None and gate.reached.is_set()) or self.observer.must_wait()):
            wait([recovery], timeout=0.003)
        overtaken = self.observer.see(self._token) != token
        calls = len(Ledger().calls())
        life.outlived = mode is Mode.FROZEN_FOR_LONG
        life.thaw()
        if gate is not None:
            gate.opened.set()
        recovery.result(LONGEST)
        if overtaken and life.role == "worker":
            # A lease that lapsed by decree, not by its own clock, lets it run into one refusal for each execution and
            # each step elsewhere that it had claimed; not further.
            begun = [call for call in Ledger().calls()[calls:] if call.process.endswith(str(id(life)))]
            apart = self.observer.see(self._keys_elsewhere)
            claimed = Counter(call.key if call.key in apart else call.execution for call in begun)
            if max(claimed.values(), default=0) > (0 if life.outlived else 1):
                raise Violation(f"a thawed worker began more bodies: {begun}")

    def _token(self) -> Any:
        attempts = list(rows(Checkpoint).exclude(queued_at=None).values_list("lease_token", "attempt"))
        return list(rows(Execution).values_list("lease_token", "status")), attempts

    def _keys_elsewhere(self) -> set[str]:
        """The idempotency keys of steps that have been dispatched apart from their turn."""
        columns = ("execution_id", "position", "item", "kind")
        found = rows(Checkpoint).exclude(queued_at=None).values_list(*columns)
        return {f"{execution_id}:{place_of(*place)}" for execution_id, *place in found}

    # -- what must hold at any time --------------------------------------------------------------------------

    def check_now(self) -> None:
        """The liveness rule, of the committed state."""
        if self._spine_is_lost:
            return
        if found := self.observer.see(liveness.violations):
            raise Violation("; ".join(found))

    def _remember_what_was_done(self) -> None:
        done = self.observer.see(
            lambda: {
                (str(execution_id), place_of(position, item, kind))
                for execution_id, position, item, kind in rows(Checkpoint)
                .filter(kind__in=("step", "undo"), status__in=self._lasting)
                .values_list("execution_id", "position", "item", "kind")
            }
        )
        self._done_before = (len(Ledger().calls()), done)

    def check_nothing_was_redone(self) -> None:
        """No body has run again whose checkpoint was committed when the fault struck."""
        number, done = self._done_before
        for call in Ledger().calls()[number:]:
            # By its key: an undo step that a run has inherited has the key of the run which registered it.
            if (call.key.partition(":")[0], call.place) in done:
                raise Violation(f"{call.label} ran again although its result was committed: {call}")
