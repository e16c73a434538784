"""What must be true of a run once everything is over, whatever died on the way."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django_durable.models import (
    Checkpoint,
    DeadLetter,
    DispatchHint,
    Execution,
    Message,
    OperatorAction,
    OperatorNote,
    Outbox,
    SingletonPlace,
)
from django_durable.models.execution import RETRYABLE
from django_durable.operators.audit import NOBODY
from django_durable.operators.move.copying import BELONGINGS
from django_durable.runtime import sweeps
from django_durable.runtime.tick import tick
from testproject.shop.models import Order
from tests.crash.faults import RESTARTS, SPINE_LOST, Mode
from tests.crash.ledger import Ledger
from tests.crash.life import Violation
from tests.crash.places import here, rows
from tests.crash.run import Run, place_of
from tests.crash.scenario import Scenario

__all__ = ["EndState"]

AT_MOST_ONCE = "crash.once"
TRANSACTIONAL = ("crash.paid", "crash.paid_late")
AS_IT_CAME = ("signal", "update", "approval")
TAKES_ONE = (*AS_IT_CAME, "callback-wait")
MAY_TAKE_ONE = ("any",)
FINAL = ("completed", "failed", "cancelled")


class EndState:
    """Everything that one run has left, read once; ``check`` raises ``Violation`` for what does not hold."""

    def __init__(self, scenario: Scenario, run: Run) -> None:
        self.scenario = scenario
        self.run = run
        self.executions = list(rows(Execution).filter(tenant=here.tenant or "").order_by("created_at", "id"))
        mine = [row.pk for row in self.executions]
        self.checkpoints = list(rows(Checkpoint).filter(execution_id__in=mine).order_by("position"))
        self.messages = list(rows(Message))
        self.letters = list(rows(DeadLetter).order_by("generation"))
        self.notes = Counter(rows(OperatorNote).values_list("execution_id", "verb"))
        actions = rows(OperatorAction)
        self.actions = Counter(actions.exclude(execution_id=NOBODY).values_list("execution_id", "verb"))
        self.moves = actions.filter(execution_id=NOBODY, verb="move_tenant").count()
        self.orders = Counter(rows(Order).values_list("payment_id", flat=True))
        self.calls, self.effects = Ledger().calls(), Ledger().effects()

    def check(self) -> None:
        """All of it."""
        _expect("executions", len(self.executions), self.scenario.executions)
        for row in self.executions:
            self._check_row(row)
            self._check_history(row)
            self._check_messages(row)
            self._check_letters(row)
        newest = self.executions[-1] if self.executions else None
        if newest is not None and newest.status == "completed" and self.scenario.output is not None:
            _expect("the output", newest.output, self.scenario.output(self.run.mark))
        _expect("actions", self.actions, self.notes)
        self._check_other_planes()
        self._check_effects()
        self._check_calls()
        self.run.check_nothing_was_redone()
        self.scenario.check(self.run)
        _expect("hints that are left", rows(DispatchHint).count(), 0)
        _expect("singleton places that are left", rows(SingletonPlace).count(), 0)
        _expect("intents that are left", rows(Outbox).count(), 0)
        if self.run.fault.mode is None and not here.apart:
            _check_that_sweeps_find_nothing()

    def _check_other_planes(self) -> None:
        """Where the tenant does not live there is nothing of it, runnable or not."""
        if self.run.fault.mode not in SPINE_LOST:  # of a move the spine has the only record
            _expect("moves", self.moves, self.scenario.moves)
        mine = [row.pk for row in self.executions]
        for plane in here.others:
            left = {model._meta.db_table: model for model, _renumbered in BELONGINGS}
            counts = {
                name: model._base_manager.using(plane).filter(execution_id__in=mine).count()
                for name, model in left.items()
            }
            counts["executions"] = Execution._base_manager.using(plane).filter(tenant=here.tenant).count()
            counts["intents"] = Outbox.objects.using(plane).count()
            _expect(f"what is left on {plane}", {name: n for name, n in counts.items() if n}, {})

    def _check_row(self, row: Execution[Any]) -> None:
        if row.status not in self.scenario.status:
            raise Violation(f"it is {row.status}, not {' or '.join(self.scenario.status)}; {row.error}")
        blank = {
            "lease_token": None,
            "wake_at": None,
            "awaiting": "",
            "pause_requested_at": None,
            "blocked_by": "",
        }
        _expect("columns of an ended execution", {name: getattr(row, name) for name in blank}, blank)
        _expect("finished_at is set", row.finished_at is not None, True)
        _expect("output is stored", row.encoded_output is not None, row.status == "completed")
        _expect("error is stored", row.encoded_error is not None, row.status in RETRYABLE)
        if self.run.fault.mode is Mode.PLANE_DOWN and row.recoveries:
            raise Violation(f"{row.recoveries} recoveries were counted for an outage")
        if row.recoveries > 1 + self.run.disturbed:
            raise Violation(f"{row.recoveries} recoveries were counted after {self.run.disturbed} crashes")

    def _check_history(self, row: Execution[Any]) -> None:
        """Every entry final, none twice, each step's outcome there; and readable."""
        history = [c for c in self.checkpoints if c.execution_id == row.pk]
        for c in history:
            told = f"the history has {c.kind} {c.name!r} {c.status} at {c.position}"
            if c.status not in FINAL or c.lease_token is None:
                raise Violation(told)
            if c.kind in ("step", "undo") and c.status == "completed" and (c.encoded_output is None or c.attempt < 1):
                raise Violation(f"{told} without an outcome")
            if c.kind in ("step", "undo") and c.status == "failed" and c.encoded_error is None:
                raise Violation(f"{told} without an error")
            if c.status != "cancelled" and c.begun > c.attempt:
                raise Violation(f"{told}: attempt {c.begun} has begun and {c.attempt} ended")
            if c.status == "cancelled" and row.status == "completed":
                raise Violation(f"{told}, but the run is completed")
        _expect("history()", [entry["position"] for entry in row.history()], [c.position for c in history])

    def _check_messages(self, row: Execution[Any]) -> None:
        mine = [m for m in self.messages if m.execution_id == row.pk]
        taken = sorted((m.consumed_by, m.payload) for m in mine if m.consumed_by is not None)
        ended = {c.position: c for c in self.checkpoints if c.execution_id == row.pk and c.status == "completed"}
        alone = {c.position for c in ended.values() if c.kind in TAKES_ONE}
        either = {c.position for c in ended.values() if c.kind in MAY_TAKE_ONE}
        _expect("which waits took one", alone | ({p for p, _payload in taken} & either), {p for p, _ in taken})
        _expect("no message taken twice", len({p for p, _payload in taken}), len(taken))
        same = [(p, ended[p].encoded_output) for p, _payload in taken if ended[p].kind in AS_IT_CAME]
        _expect("what the waits took", same, [one for one in taken if ended[one[0]].kind in AS_IT_CAME])
        if row.status == "completed":
            _expect("unread messages", len(mine) - len(taken), self.scenario.unread)

    def _check_letters(self, row: Execution[Any]) -> None:
        mine = [letter for letter in self.letters if letter.execution_id == row.pk]
        _expect("generations", [letter.generation for letter in mine], list(range(1, len(mine) + 1)))
        has = int(self.scenario.of in ("", row.workflow))
        most = has * (self.scenario.letters + self.scenario.maybe_letters)
        if not has * self.scenario.letters <= len(mine) <= most:
            raise Violation(f"{len(mine)} dead letters of {row.workflow}, not {self.scenario.letters}")
        still_open = [letter for letter in mine if letter.retried_at is None]
        _expect("open letters", len(still_open), int(row.status in RETRYABLE))
        noted = {verb: number for (execution_id, verb), number in self.notes.items() if execution_id == row.pk}
        _expect(f"notes of {row.workflow}", noted, dict(self.scenario.notes) if has else {})

    def _check_effects(self) -> None:
        per_label = Counter(label for _key, label, _execution in self.effects)
        required = {f"{self.run.mark}{label}" for label in self.scenario.labels}
        allowed = required | {f"{self.run.mark}{label}" for label in self.scenario.maybe}
        if not required <= set(per_label) <= allowed:
            raise Violation(f"effects {sorted(per_label)}, not {sorted(required)}")
        for label, number in per_label.items():
            wanted = self.scenario.times.get(label.removeprefix(self.run.mark), self.scenario.executions)
            _expect(f"effects of {label}", number, wanted)
        orders = {f"{self.run.mark}{label}": 1 for label in self.scenario.orders}
        _expect("rows of transactions", dict(self.orders), orders)

    def _check_calls(self) -> None:
        names = {(str(c.execution_id), place_of(c.position, c.item, c.kind)): c.name for c in self.checkpoints}
        latest: dict[str, int] = {}
        for call in self.calls:
            if call.attempt < latest.get(call.key, 0) and not self.scenario.reopens:
                raise Violation(f"attempt {call.attempt} of {call.key} came after {latest[call.key]}")
            latest[call.key] = call.attempt
        for (key, attempt), number in Counter((call.key, call.attempt) for call in self.calls).items():
            execution, _, place = key.partition(":")
            most = self._most_calls(names.get((execution, place), ""))
            if number > most:
                raise Violation(f"attempt {attempt} of {key} was started {number} times, at most {most} are right")

    def _most_calls(self, name: str) -> int:
        if name == AT_MOST_ONCE or not self.run.disturbed:
            most = 1
        elif self.run.fault.mode in (*RESTARTS, *SPINE_LOST):
            most = 2  # the leases are the spine's: a turn in flight is taken over where it is lost
        elif name in TRANSACTIONAL:
            most = 3  # its attempt is repeated whole when its connection is lost
        else:
            most = 1  # a lost connection never repeats a body that is over
        return most + self.scenario.repeats


def _expect(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise Violation(f"{what}: {found!r}, not {wanted!r}")


def _check_that_sweeps_find_nothing() -> None:
    done = tick(rebuild=True)
    _expect("what the sweeps had to mend", {name: n for name, n in done.items() if n}, {})
    _expect("missing letters", sweeps.write_missing_letters(here.plane), 0)
