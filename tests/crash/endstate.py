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
)
from django_durable.runtime import sweeps
from django_durable.runtime.tick import tick
from testproject.shop.models import Order
from tests.crash.faults import RESTARTS
from tests.crash.ledger import Ledger
from tests.crash.life import USING, Violation
from tests.crash.run import Run
from tests.crash.scenario import Scenario

__all__ = ["check_end"]

AT_MOST_ONCE = "crash.once"
TRANSACTIONAL = ("crash.paid", "crash.paid_late")
FINAL = ("completed", "failed", "cancelled")


def check_end(scenario: Scenario, run: Run) -> None:
    """Raise ``Violation`` for the first thing that does not hold."""
    rows = run.rows()
    _expect("executions", len(rows), scenario.executions)
    for row in rows:
        _check_row(scenario, row)
        _check_history(row)
        _check_messages(row)
        _check_audit(scenario, row)
        _check_progress(run, row)
    if rows and scenario.output is not None and rows[-1].status == "completed":
        _expect("the output", rows[-1].output, scenario.output(run.mark))
    _check_effects(scenario, run, rows)
    run.check_nothing_was_redone()
    scenario.check(run)
    _check_that_nothing_is_left()


def _expect(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise Violation(f"{what}: {found!r}, not {wanted!r}")


def _check_row(scenario: Scenario, row: Execution[Any]) -> None:
    if row.status not in scenario.status:
        raise Violation(f"it is {row.status}, not {' or '.join(scenario.status)}; {row.error}")
    blank = {
        "lease_token": None,
        "worker": "",
        "claimed_at": None,
        "wake_at": None,
        "awaiting": "",
        "pause_requested_at": None,
        "blocked_by": "",
    }
    _expect("columns of an ended execution", {name: getattr(row, name) for name in blank}, blank)
    _expect("finished_at is set", row.finished_at is not None, True)
    _expect("output is stored", row.encoded_output is not None, row.status == "completed")
    _expect("error is stored", row.encoded_error is not None, row.status in ("failed", "timed_out", "dead"))


def _check_history(row: Execution[Any]) -> None:
    """Every entry final, none twice, each step's outcome there, in order of time; and readable."""
    checkpoints = list(Checkpoint.objects.using(USING).filter(execution_id=row.pk).order_by("position"))
    positions = [c.position for c in checkpoints]
    if len(set(positions)) != len(positions):
        raise Violation(f"positions {positions}")
    for c in checkpoints:
        if c.status not in FINAL or c.lease_token is None:
            raise Violation(f"the history has {c.kind} {c.name!r} {c.status} at {c.position}")
        if c.kind == "step" and c.status == "completed" and (c.encoded_output is None or c.attempt < 1):
            raise Violation(f"step {c.name!r} is completed without an outcome")
        if c.kind == "step" and c.status == "failed" and c.encoded_error is None:
            raise Violation(f"step {c.name!r} failed without an error")
        if c.status != "cancelled" and c.begun > c.attempt:
            raise Violation(f"step {c.name!r} has begun attempt {c.begun} and ended {c.attempt}")
    if row.status == "completed" and any(c.status == "cancelled" for c in checkpoints):
        raise Violation("a completed run has a cancelled entry")
    _expect("history()", [entry["position"] for entry in row.history()], positions)


def _check_messages(row: Execution[Any]) -> None:
    messages = list(Message.objects.using(USING).filter(execution_id=row.pk))
    taken = sorted(m.consumed_by for m in messages if m.consumed_by is not None)
    waits = Checkpoint.objects.using(USING).filter(execution_id=row.pk, kind="signal", status="completed")
    by_position = {m.consumed_by: m.payload for m in messages if m.consumed_by is not None}
    _expect("waits that took a message", sorted(w.position for w in waits), taken)
    _expect("what they took", {w.position: w.encoded_output for w in waits}, by_position)


def _check_audit(scenario: Scenario, row: Execution[Any]) -> None:
    letters = DeadLetter.objects.using(USING).filter(execution_id=row.pk).order_by("generation")
    generations = [letter.generation for letter in letters]
    _expect("generations", generations, list(range(1, len(generations) + 1)))
    if not scenario.letters <= len(generations) <= scenario.letters + scenario.maybe_letters:
        raise Violation(f"{len(generations)} dead letters, not {scenario.letters}")
    still_open = [letter.generation for letter in letters if letter.retried_at is None]
    _expect("open letters", len(still_open), int(row.status in ("failed", "timed_out", "dead")))
    notes = Counter(OperatorNote.objects.using(USING).filter(execution_id=row.pk).values_list("verb", flat=True))
    _expect("notes", dict(notes), dict(scenario.notes))
    actions = OperatorAction.objects.using(USING).filter(execution_id=row.pk).values_list("verb", flat=True)
    _expect("actions", Counter(actions), notes)
    unread = Message.objects.using(USING).filter(execution_id=row.pk, consumed_by__isnull=True).count()
    if row.status == "completed":
        _expect("unread messages", unread, scenario.unread)


def _check_progress(run: Run, row: Execution[Any]) -> None:
    if row.recoveries > 1 + run.disturbed:
        raise Violation(f"{row.recoveries} recoveries were counted after {run.disturbed} crashes")


def _check_effects(scenario: Scenario, run: Run, rows: list[Execution[Any]]) -> None:
    effects, calls = Ledger().effects(), Ledger().calls()
    per_label = Counter(label for _key, label, _execution in effects)
    required = {f"{run.mark}{label}" for label in scenario.labels}
    allowed = required | {f"{run.mark}{label}" for label in scenario.maybe}
    if not required <= set(per_label) <= allowed:
        raise Violation(f"effects {sorted(per_label)}, not {sorted(required)}")
    for label, number in per_label.items():
        _expect(f"effects of {label}", number, scenario.executions)
    names = dict(
        ((str(c.execution_id), c.position), c.name)
        for c in Checkpoint.objects.using(USING).filter(execution_id__in=[row.pk for row in rows], kind="step")
    )
    repeats = Counter((call.key, call.attempt, call.execution, call.position) for call in calls)
    for (key, attempt, execution, position), number in repeats.items():
        most = _most_calls(run, names.get((execution, position), ""), scenario)
        if number > most:
            raise Violation(f"attempt {attempt} of {key} was started {number} times, at most {most} are right")
    _check_attempts(calls, scenario)
    _check_orders(scenario, run)


def _most_calls(run: Run, name: str, scenario: Scenario) -> int:
    if name == AT_MOST_ONCE or not run.disturbed:
        most = 1
    elif run.fault.mode in RESTARTS:
        most = 2
    elif name in TRANSACTIONAL:
        most = 3  # its attempt is repeated whole when its connection is lost
    else:
        most = 1  # a lost connection never repeats a body that is over
    return most + scenario.repeats


def _check_attempts(calls: list[Any], scenario: Scenario) -> None:
    """``attempt`` never goes back, but at an operator's retry."""
    latest: dict[str, int] = {}
    for call in calls:
        if call.attempt < latest.get(call.key, 0) and not scenario.reopens:
            raise Violation(f"attempt {call.attempt} of {call.key} came after {latest[call.key]}")
        latest[call.key] = call.attempt


def _check_orders(scenario: Scenario, run: Run) -> None:
    made = Counter(Order.objects.using(USING).filter(payment_id__startswith=run.mark).values_list("payment_id", flat=True))
    _expect("rows of transactional steps", dict(made), {f"{run.mark}{label}": 1 for label in scenario.orders})


def _check_that_nothing_is_left() -> None:
    _expect("hints that are left", DispatchHint.objects.using(USING).count(), 0)
    done = tick(rebuild=True)
    _expect("what the sweeps had to mend", {name: n for name, n in done.items() if n}, {})
    _expect("missing letters", sweeps.write_missing_letters(USING), 0)
