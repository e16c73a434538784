"""Every scenario of the sweep."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.crash import flows
from tests.crash.acts import (
    Act,
    cancel,
    later,
    pause,
    restart,
    resume,
    retry,
    send,
    send_twice,
    signal_or_start,
    start,
    start_again,
    start_rolled_back,
    start_unkeyed,
    start_with_order,
    work,
    work_until_stopped,
)
from tests.crash.faults import RESTARTS
from tests.crash.life import Violation
from tests.crash.run import Run
from tests.crash.scenario import NOT_FROZEN, Scenario
from tests.crash.stage import stage

__all__ = ["SCENARIOS"]

Script = list[Act | timedelta | Callable[[], None]]


def _meanwhile(run: Run, act: Act) -> Callable[[], None]:
    """Before the first worker: while the busy body runs, another process does this, once."""

    def prepare() -> None:
        stage.during = lambda: run.ensure(act)

    return prepare


def _what_remains() -> Script:
    """Two more workers, each after the leases of those before have lapsed."""
    return [later(1), work(), later(1), work()]


def _repair() -> None:
    stage.repaired = True


def _stop() -> None:
    stage.during = stage.stop.set


def _no_stop() -> None:
    stage.during = None
    stage.stop.clear()


def _done(*labels: str) -> Callable[[str], Any]:
    return lambda mark: [f"{mark}{label} done" for label in labels]


def _signalled(mark: str) -> list[Any]:
    return [f"{mark}-0 done", "yes", f"{mark}-2 done"]


def _interrupted_or_completed(run: Run) -> None:
    error = run.execution().error
    if error is not None and (run.fault.mode not in RESTARTS or "StepInterrupted" not in error["type"]):
        raise Violation(f"it failed with {error}")


def _published(run: Run) -> None:
    execution = run.execution()
    if execution.tags != {"mark": run.mark, "paid": True, "word": "yes"}:
        raise Violation(f"tags {execution.tags}")
    if execution.value("stage") != "ended":
        raise Violation(f"value {execution.value('stage')}")


def _failed_with(kind: str) -> Callable[[Run], None]:
    def check(run: Run) -> None:
        error = run.execution().error
        if error is None or not error["type"].endswith(kind):
            raise Violation(f"the error is {error}, not {kind}")

    return check


THREE = ("-0", "-1", "-2")
FIRST_AND_LAST = ("-0", "-2")

SCENARIOS = [
    Scenario(
        name="three_steps",
        script=lambda run: [start(flows.three_steps), work()],
        labels=THREE,
        output=_done(*THREE),
    ),
    Scenario(
        name="unkeyed_start",
        script=lambda run: [start_unkeyed(flows.three_steps), work()],
        labels=THREE,
    ),
    Scenario(
        name="transactional_steps",
        sweep_from=1,
        script=lambda run: [start(flows.transactional), work()],
        labels=("-0", "-1", "-2", "-3"),
        orders=("-1", "-2"),
        output=_done("-0", "-1", "-2", "-3"),
    ),
    Scenario(
        name="at_most_once_with_one_attempt",
        sweep_from=1,
        script=lambda run: [start(flows.at_most_once, 1), work()],
        status=("completed", "failed"),
        labels=("-0",),
        maybe=("-1", "-2"),
        maybe_letters=1,
        check=_interrupted_or_completed,
    ),
    Scenario(
        name="at_most_once_with_three_attempts",
        sweep_from=1,
        script=lambda run: [start(flows.at_most_once, 3), work()],
        labels=THREE,
        output=_done(*THREE),
    ),
    Scenario(
        name="sleep",
        sweep_from=1,
        script=lambda run: [start(flows.sleeper), work(), later(2), work()],
        labels=FIRST_AND_LAST,
        output=_done(*FIRST_AND_LAST),
    ),
    Scenario(
        name="delayed_start",
        script=lambda run: [start(flows.three_steps, run_after=3600.0), work(), later(2), work()],
        labels=THREE,
    ),
    Scenario(
        name="signal_before_the_wait",
        script=lambda run: [start(flows.one_signal), send("yes"), work()],
        labels=FIRST_AND_LAST,
        output=_signalled,
    ),
    Scenario(
        name="signal_during_a_step",
        sweep_from=2,
        script=lambda run: [_meanwhile(run, send("yes", dedup_key="one")), start(flows.one_signal), work()],
        labels=FIRST_AND_LAST,
        output=_signalled,
    ),
    Scenario(
        name="signal_after_the_wait",
        script=lambda run: [start(flows.one_signal), work(), send("yes"), work()],
        labels=FIRST_AND_LAST,
        output=_signalled,
    ),
    Scenario(
        name="signal_to_an_execution_whose_worker_is_dead",
        sweep_from=1,
        script=lambda run: [start(flows.one_signal), work(), send("yes"), work(), *_what_remains()],
        labels=FIRST_AND_LAST,
        output=_signalled,
        recover_at_once=False,
        modes=NOT_FROZEN,
    ),
    Scenario(
        name="two_signals_in_order",
        sweep_from=1,
        script=lambda run: [start(flows.two_signals), send("one"), work(), send("two"), work()],
        labels=("-0", "-2", "-4"),
        output=lambda mark: [f"{mark}-0 done", "one", f"{mark}-2 done", "two", f"{mark}-4 done"],
    ),
    Scenario(
        name="two_signals_at_once",
        sweep_from=2,
        script=lambda run: [start(flows.two_signals), work(), send("one"), send("two"), work()],
        labels=("-0", "-2", "-4"),
        output=lambda mark: [f"{mark}-0 done", "one", f"{mark}-2 done", "two", f"{mark}-4 done"],
    ),
    Scenario(
        name="one_signal_too_many",
        sweep_from=3,
        script=lambda run: [start(flows.one_signal), work(), send("yes"), send("more"), work()],
        labels=FIRST_AND_LAST,
        output=_signalled,
        unread=1,
        modes=NOT_FROZEN,
    ),
    Scenario(
        name="signal_sent_twice_in_a_transaction",
        sweep_from=2,
        script=lambda run: [start(flows.one_signal), work(), send_twice("yes"), work()],
        labels=FIRST_AND_LAST,
        orders=("-sent",),
        output=_signalled,
    ),
    Scenario(
        name="signal_or_start",
        script=lambda run: [signal_or_start(flows.one_signal, "yes"), work()],
        labels=FIRST_AND_LAST,
        output=_signalled,
    ),
    Scenario(
        name="signal_timeout",
        sweep_from=1,
        script=lambda run: [start(flows.signal_timeout), work(), later(2), work()],
        labels=FIRST_AND_LAST,
        output=lambda mark: [f"{mark}-0 done", "late", f"{mark}-2 done"],
    ),
    Scenario(
        name="signal_before_its_timeout_noticed_after",
        sweep_from=2,
        script=lambda run: [start(flows.signal_timeout), work(), send("yes"), later(2), work()],
        labels=FIRST_AND_LAST,
        output=_signalled,
    ),
    Scenario(
        name="retry_after_a_short_delay",
        sweep_from=1,
        script=lambda run: [start(flows.retried_inline), work()],
        labels=("-0", "-1"),
        output=_done("-0", "-1"),
    ),
    Scenario(
        name="retry_after_a_long_delay",
        sweep_from=1,
        script=lambda run: [start(flows.retried_late), work(), later(2), work(), later(2), work()],
        labels=("-0", "-1"),
        output=_done("-0", "-1"),
    ),
    Scenario(
        name="dead_letter",
        sweep_from=1,
        script=lambda run: [start(flows.doomed), work()],
        status=("failed",),
        labels=THREE,
        letters=1,
        check=_failed_with("ValueError"),
    ),
    Scenario(
        name="operator_retry",
        sweep_from=2,
        script=lambda run: [start(flows.doomed), work(), retry(), work()],
        labels=("-0", "-1", "-2", "-3"),
        output=_done("-0", "-2", "-3"),
        letters=1,
        notes={"retry": 1},
        reopens=True,
        repeats=1,
    ),
    Scenario(
        name="cancel_of_a_pending_one",
        script=lambda run: [start(flows.three_steps), cancel(), work()],
        status=("cancelled",),
        modes=NOT_FROZEN,
        maybe=THREE,
        notes={"cancel": 1},
    ),
    Scenario(
        name="cancel_of_a_running_one",
        sweep_from=2,
        script=lambda run: [_meanwhile(run, cancel()), start(flows.stopped), work()],
        status=("cancelled",),
        labels=("-0", "-1"),
        notes={"cancel": 1},
    ),
    Scenario(
        name="cancel_of_a_waiting_one",
        sweep_from=2,
        script=lambda run: [start(flows.one_signal), work(), cancel(), work()],
        status=("cancelled",),
        labels=("-0",),
        notes={"cancel": 1},
    ),
    Scenario(
        name="cancel_of_one_whose_worker_is_dead",
        sweep_from=1,
        script=lambda run: [start(flows.one_signal), work(), cancel(), *_what_remains()],
        status=("cancelled",),
        maybe=("-0",),
        notes={"cancel": 1},
        recover_at_once=False,
        modes=NOT_FROZEN,
    ),
    Scenario(
        name="start_in_a_transaction",
        script=lambda run: [start_with_order(flows.three_steps), work()],
        labels=THREE,
        orders=("-own",),
    ),
    Scenario(
        name="start_in_a_rolled_back_transaction",
        script=lambda run: [start_rolled_back(flows.three_steps), work()],
        orders=("-own",),
        executions=0,
    ),
    Scenario(
        name="start_again_under_one_key",
        sweep_from=1,
        script=lambda run: [start(flows.three_steps), start_again(flows.three_steps), work()],
        labels=THREE,
        orders=("-again",),
    ),
    Scenario(
        name="restart_under_one_key",
        sweep_from=2,
        script=lambda run: [start(flows.three_steps), work(), restart(flows.three_steps), work()],
        labels=THREE,
        executions=2,
    ),
    Scenario(
        name="execution_timeout_while_pending",
        sweep_from=2,
        script=lambda run: [start(flows.three_steps, timeout=3600.0), later(2), work()],
        status=("timed_out",),
        letters=1,
        check=_failed_with("ExecutionTimedOut"),
    ),
    Scenario(
        name="execution_timeout_while_waiting",
        sweep_from=2,
        script=lambda run: [start(flows.one_signal, timeout=3600.0), work(), later(2), work()],
        status=("timed_out",),
        labels=("-0",),
        letters=1,
    ),
    Scenario(
        name="execution_timeout_while_its_worker_is_dead",
        sweep_from=1,
        script=lambda run: [start(flows.one_signal, timeout=3600.0), work(), *_what_remains(), *_what_remains()],
        status=("timed_out",),
        maybe=("-0",),
        letters=1,
        recover_at_once=False,
        modes=NOT_FROZEN,
    ),
    Scenario(
        name="retry_of_a_timed_out_one",
        sweep_from=4,
        script=lambda run: [
            *(start(flows.one_signal, timeout=3600.0), work(), later(2), work()),
            *(retry(), work(), send("yes"), work()),
        ],
        labels=FIRST_AND_LAST,
        output=_signalled,
        letters=1,
        notes={"retry": 1},
        reopens=True,
        repeats=1,
    ),
    Scenario(
        name="pause_and_resume_while_waiting",
        sweep_from=2,
        script=lambda run: [start(flows.one_signal), work(), pause(), send("yes"), work(), resume(), work()],
        labels=FIRST_AND_LAST,
        output=_signalled,
        notes={"pause": 1, "resume": 1},
    ),
    Scenario(
        name="pause_and_resume_while_running",
        sweep_from=2,
        script=lambda run: [_meanwhile(run, pause()), start(flows.stopped), work(), resume(), work()],
        labels=THREE,
        output=_done(*THREE),
        notes={"pause": 1, "resume": 1},
    ),
    Scenario(
        name="pause_of_one_whose_worker_is_dead",
        sweep_from=1,
        script=lambda run: [
            *(start(flows.one_signal), work(), pause(), later(1), work()),
            *(resume(), send("yes"), work(), *_what_remains()),
        ],
        labels=FIRST_AND_LAST,
        output=_signalled,
        notes={"pause": 1, "resume": 1},
        recover_at_once=False,
        modes=NOT_FROZEN,
    ),
    Scenario(
        name="breakpoint",
        sweep_from=1,
        script=lambda run: [start(flows.breakpoints), work(), resume(), work()],
        labels=FIRST_AND_LAST,
        output=_done(*FIRST_AND_LAST),
        notes={"resume": 1},
    ),
    Scenario(
        name="values_and_tags_that_ride_along",
        sweep_from=1,
        script=lambda run: [start(flows.published), work(), send("yes"), work()],
        labels=("-2", "-4", "-9"),
        orders=("-4",),
        output=lambda mark: [True, False, False, True, "yes"],
        check=_published,
    ),
    Scenario(
        name="shutdown_hands_back",
        sweep_from=2,
        script=lambda run: [
            *(_stop, start(flows.stopped), work_until_stopped(), _no_stop, work()),
        ],
        labels=THREE,
        output=_done(*THREE),
    ),
    Scenario(
        name="a_body_that_ends_its_process",
        sweep_from=1,
        repeats=1,
        script=lambda run: [start(flows.quitting), work(), _repair, later(1), work()],
        labels=THREE,
        output=_done(*THREE),
    ),
    Scenario(
        name="more_crashes_than_allowed",
        sweep_from=1,
        repeats=1,
        script=lambda run: [start(flows.lethal), work(), later(1), work()],
        status=("dead",),
        maybe=("-0", "-1"),
        letters=1,
        check=_failed_with("WorkerLost"),
    ),
    Scenario(
        name="swallowed_suspension",
        sweep_from=1,
        script=lambda run: [start(flows.swallowing), work(), later(2), work()],
        status=("failed", "completed"),
        labels=("-0",),
        maybe_letters=1,
    ),
]
