"""Scenarios of executions that are undone: a block, a failed run, a cancelled one, one past its deadline."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tests.crash import flows
from tests.crash.acts import Act, cancel_and_undo, later, retry, start, work
from tests.crash.expectation import done
from tests.crash.faults import STANDING_STILL
from tests.crash.ledger import Ledger
from tests.crash.life import Violation
from tests.crash.run import Run
from tests.crash.scenario import NOT_FROZEN, Scenario
from tests.crash.stage import stage

__all__ = ["UNDONE"]

WHOLE = ("-1", "-3", "-undo-2", "-undo-0")


def last_first(run: Run) -> None:
    """Each undo step began for the first time after those registered later, and after all that it undoes."""
    labels = list(dict.fromkeys(call.label.removeprefix(run.mark) for call in Ledger().calls()))
    undo = [label for label in labels if label.startswith("-undo")]
    if undo != sorted(undo, reverse=True):
        raise Violation(f"undo steps ran in the order {undo}")


def _forward_ended_before(run: Run) -> None:
    """No step began after the first undo step, unless in a process whose lease had lapsed without its knowledge."""
    last_first(run)
    if run.fault.mode in STANDING_STILL:
        return
    labels = [call.label.removeprefix(run.mark) for call in Ledger().calls()]
    undo = [number for number, label in enumerate(labels) if label.startswith("-undo")]
    if undo and any(not label.startswith("-undo") for label in labels[undo[0] :]):
        raise Violation(f"a step ran after an undo step: {labels}")


def _cancelled_meanwhile(run: Run) -> Callable[[], None]:
    def prepare() -> None:
        stage.during = lambda: run.ensure(cancel_and_undo())

    return prepare


def _what_remains() -> list[Act | timedelta | Callable[[], None]]:
    return [later(1), work(), later(1), work()]


UNDONE = [
    Scenario(
        name="undo_of_a_block",
        script=lambda run: [start(flows.undone_block), work()],
        labels=("-1", "-3", "-5", "-undo-2", "-undo-0"),
        orders=("-undo-2",),
        output=done("-5"),
        check=last_first,
        sweep_from=1,
    ),
    Scenario(
        name="undo_of_a_failed_run",
        script=lambda run: [start(flows.undone, "fail"), work()],
        status=("failed",),
        labels=(*WHOLE, "-4"),
        letters=1,
        check=_forward_ended_before,
        sweep_from=1,
    ),
    Scenario(
        name="undo_of_a_cancelled_one_that_waits",
        script=lambda run: [start(flows.undone, "wait"), work(), cancel_and_undo(), work()],
        status=("cancelled",),
        labels=WHOLE,
        notes={"cancel": 1},
        check=_forward_ended_before,
        sweep_from=2,
    ),
    Scenario(
        name="undo_of_a_cancelled_one_that_runs",
        script=lambda run: [_cancelled_meanwhile(run), start(flows.undone, "wait"), work()],
        status=("cancelled",),
        labels=("-1", "-undo-0"),
        notes={"cancel": 1},
        check=_forward_ended_before,
        sweep_from=2,
    ),
    Scenario(
        name="undo_of_a_cancelled_one_whose_worker_is_dead",
        script=lambda run: [
            *(start(flows.undone, "wait"), work(), cancel_and_undo()),
            *(*_what_remains(), *_what_remains()),
        ],
        status=("cancelled",),
        maybe=WHOLE,
        notes={"cancel": 1},
        check=_forward_ended_before,
        recover_at_once=False,
        modes=NOT_FROZEN,
        sweep_from=1,
    ),
    Scenario(
        name="undo_of_one_past_its_deadline",
        script=lambda run: [start(flows.undone, "wait", timeout=3600.0), work(), later(2), work()],
        status=("timed_out",),
        labels=WHOLE,
        letters=1,
        check=_forward_ended_before,
        sweep_from=2,
    ),
    Scenario(
        name="undo_of_one_past_its_deadline_whose_worker_is_dead",
        script=lambda run: [
            *(start(flows.undone, "wait", timeout=3600.0), work()),
            *(*_what_remains(), *_what_remains()),
        ],
        status=("timed_out",),
        maybe=WHOLE,
        letters=1,
        check=_forward_ended_before,
        recover_at_once=False,
        modes=NOT_FROZEN,
        sweep_from=1,
    ),
    Scenario(
        name="undo_that_waits_for_its_next_attempt",
        script=lambda run: [start(flows.undone_late, False), work(), later(1.1), work()],
        status=("failed",),
        labels=("-1", "-undo-0"),
        letters=1,
        sweep_from=1,
    ),
    Scenario(
        name="undo_of_a_block_that_waits_for_its_next_attempt",
        script=lambda run: [start(flows.undone_late, True), work(), later(1.1), work()],
        status=("failed",),
        labels=("-1", "-undo-0"),
        letters=1,
        sweep_from=1,
    ),
    Scenario(
        name="retry_of_an_undo_that_failed",
        script=lambda run: [start(flows.undo_fails), work(), retry(), work()],
        status=("failed",),
        labels=("-2", "-undo-0", "-undo-1"),
        letters=2,
        notes={"retry": 1},
        reopens=True,
        repeats=1,
        sweep_from=2,
    ),
]
