"""Scenarios of an execution that others act on: signals, cancels, pauses, retries, timeouts."""

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
    resume,
    retry,
    send,
    send_twice,
    signal_or_start,
    start,
    work,
)
from tests.crash.expectation import FIRST_AND_LAST, THREE, done
from tests.crash.run import Run
from tests.crash.scenario import NOT_FROZEN, Scenario
from tests.crash.stage import stage

__all__ = ["ACTED_ON"]


def _meanwhile(run: Run, act: Act) -> Callable[[], None]:
    """Before the first worker: while the busy body runs, another process does this, once."""

    def prepare() -> None:
        stage.during = lambda: run.ensure(act)

    return prepare


def _what_remains() -> list[Act | timedelta | Callable[[], None]]:
    """Two more workers, each after the leases of those before have lapsed."""
    return [later(1), work(), later(1), work()]


def _signalled(mark: str) -> list[Any]:
    return [f"{mark}-0 done", "yes", f"{mark}-2 done"]


ACTED_ON = [
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
        name="operator_retry",
        sweep_from=2,
        script=lambda run: [start(flows.doomed), work(), retry(), work()],
        labels=("-0", "-1", "-2", "-3"),
        output=done("-0", "-2", "-3"),
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
        output=done(*THREE),
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
        output=done(*FIRST_AND_LAST),
        notes={"resume": 1},
    ),
]
