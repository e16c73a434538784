"""Scenarios of an execution that is left alone: starts, steps, sleeps, retries, ends."""

from __future__ import annotations

from django_durable.authoring.registry import add_workflow, forget
from tests.crash import flows
from tests.crash.acts import (
    expect_status,
    later,
    restart,
    resume,
    send,
    start,
    start_again,
    start_rolled_back,
    start_unkeyed,
    start_with_order,
    sweep_unknown,
    work,
    work_until_stopped,
)
from tests.crash.expectation import FIRST_AND_LAST, THREE, done, failed_with
from tests.crash.faults import RESTARTS
from tests.crash.life import Violation
from tests.crash.run import Run
from tests.crash.scenario import NOT_FROZEN, Scenario
from tests.crash.stage import stage

__all__ = ["ALONE"]


def _repair() -> None:
    stage.repaired = True


def _change() -> None:
    stage.changed = True


def _change_back() -> None:
    stage.changed = False


def _go_missing() -> None:
    forget(flows.three_steps)


def _come_back() -> None:
    add_workflow(flows.three_steps)


def _stop() -> None:
    stage.during = stage.stop.set


def _no_stop() -> None:
    stage.during = None
    stage.stop.clear()


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


ALONE = [
    Scenario(
        name="three_steps",
        script=lambda run: [start(flows.three_steps), work()],
        labels=THREE,
        output=done(*THREE),
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
        output=done("-0", "-1", "-2", "-3"),
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
        output=done(*THREE),
    ),
    Scenario(
        name="sleep",
        sweep_from=1,
        script=lambda run: [start(flows.sleeper), work(), later(2), work()],
        labels=FIRST_AND_LAST,
        output=done(*FIRST_AND_LAST),
    ),
    Scenario(
        name="delayed_start",
        script=lambda run: [start(flows.three_steps, run_after=3600.0), work(), later(2), work()],
        labels=THREE,
    ),
    Scenario(
        name="retry_after_a_short_delay",
        sweep_from=1,
        script=lambda run: [start(flows.retried_inline), work()],
        labels=("-0", "-1"),
        output=done("-0", "-1"),
    ),
    Scenario(
        name="retry_after_a_long_delay",
        sweep_from=1,
        script=lambda run: [start(flows.retried_late), work(), later(2), work(), later(2), work()],
        labels=("-0", "-1"),
        output=done("-0", "-1"),
    ),
    Scenario(
        name="dead_letter",
        sweep_from=1,
        script=lambda run: [start(flows.doomed), work()],
        status=("failed",),
        labels=THREE,
        letters=1,
        check=failed_with("ValueError"),
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
        check=failed_with("ExecutionTimedOut"),
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
        output=done(*THREE),
    ),
    Scenario(
        name="a_body_that_ends_its_process",
        sweep_from=1,
        repeats=1,
        script=lambda run: [start(flows.quitting), work(), _repair, later(1), work()],
        labels=THREE,
        output=done(*THREE),
    ),
    Scenario(
        name="more_crashes_than_allowed",
        sweep_from=1,
        repeats=1,
        script=lambda run: [start(flows.lethal), work(), later(1), work()],
        status=("dead",),
        maybe=("-0", "-1"),
        letters=1,
        check=failed_with("WorkerLost"),
    ),
    Scenario(
        name="code_that_does_not_match_its_history",
        sweep_from=3,
        script=lambda run: [
            *(start(flows.changing), work(), _change, later(2), work()),
            *(expect_status("blocked"), _change_back, resume(), work()),
        ],
        labels=FIRST_AND_LAST,
        output=done(*FIRST_AND_LAST),
        notes={"resume": 1},
    ),
    Scenario(
        name="code_that_is_missing",
        sweep_from=2,
        script=lambda run: [
            *(start(flows.three_steps), _go_missing, sweep_unknown(), expect_status("blocked")),
            *(_come_back, resume(), work()),
        ],
        labels=THREE,
        output=done(*THREE),
        notes={"resume": 1},
        modes=NOT_FROZEN,
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
