"""Scenarios of what runs elsewhere: steps on another queue, futures, maps, children and their parents' ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django_durable.models import Execution
from tests.crash import flows_elsewhere as flows
from tests.crash.acts import Act, cancel, cancel_and_undo, later, start, work
from tests.crash.expectation import THREE, done
from tests.crash.life import Violation
from tests.crash.places import rows
from tests.crash.run import Run
from tests.crash.scenario import Scenario
from tests.crash.stage import stage

__all__ = ["ELSEWHERE"]


def _ended(status: str, child: str, output: Callable[[str], Any] | None = None) -> Callable[[Run], None]:
    """How the parent ended, with what, and how every child did."""

    def check(run: Run) -> None:
        row = run.execution()
        if row.status != status or (output is not None and row.output != output(run.mark)):
            raise Violation(f"the parent is {row.status} with {row.output}, {row.error}")
        statuses = set(rows(Execution).exclude(parent_id=None).values_list("status", flat=True))
        if statuses != {child}:
            raise Violation(f"the children are {statuses}")

    return check


def _child() -> Execution[Any]:
    return rows(Execution).get(parent_id__isnull=False)


def cancel_the_child() -> Act:
    """An operator ends the child, not the parent."""
    return Act(
        "operator",
        lambda run: _child().cancel(actor="ann"),
        lambda run: _child().cancel_requested_at is not None,
    )


def _cancelled_meanwhile(run: Run) -> Callable[[], None]:
    def prepare() -> None:
        stage.during = lambda: run.ensure(cancel())

    return prepare


def _once(*labels: str) -> dict[str, int]:
    return dict.fromkeys(labels, 1)


ELSEWHERE = [
    Scenario(
        name="step_elsewhere",
        sweep_from=1,
        script=lambda run: [start(flows.afar), work()],
        labels=THREE,
        output=done(*THREE),
    ),
    Scenario(
        name="step_elsewhere_with_a_retry",
        sweep_from=1,
        script=lambda run: [start(flows.retried_afar), work()],
        labels=("-0", "-1"),
        output=done("-0", "-1"),
    ),
    Scenario(
        name="submit_and_gather",
        sweep_from=1,
        script=lambda run: [start(flows.gathered), work()],
        labels=THREE,
        output=done(*THREE),
    ),
    Scenario(
        name="transactional_step_apart_from_its_turn",
        sweep_from=1,
        script=lambda run: [start(flows.paid_apart), work()],
        labels=("-0", "-1"),
        orders=("-0",),
        output=done("-0", "-1"),
    ),
    Scenario(
        name="map_of_three_two_at_a_time",
        sweep_from=1,
        script=lambda run: [start(flows.mapped), work()],
        labels=THREE,
        output=done(*THREE),
    ),
    Scenario(
        name="map_of_children",
        sweep_from=1,
        script=lambda run: [start(flows.mapped_children), work()],
        labels=THREE,
        executions=4,
        times=_once(*THREE),
        check=_ended("completed", "completed", done(*THREE)),
    ),
    Scenario(
        name="children_in_line",
        sweep_from=1,
        script=lambda run: [start(flows.children_in_line), work()],
        labels=THREE,
        executions=4,
        times=_once(*THREE),
        check=_ended("completed", "completed", done(*THREE)),
    ),
    Scenario(
        name="child_completed",
        sweep_from=1,
        script=lambda run: [start(flows.parent), work()],
        labels=("-0", "-1"),
        executions=2,
        times=_once("-0", "-1"),
        check=_ended("completed", "completed", done("-0", "-1")),
    ),
    Scenario(
        name="child_failed_and_handled",
        sweep_from=1,
        script=lambda run: [start(flows.parent_handles, False), work()],
        status=("completed", "failed"),
        labels=("-0", "-1"),
        executions=2,
        times=_once("-0", "-1"),
        letters=1,
        of="crash.failing_leaf",
        check=_ended("completed", "failed", lambda mark: ["failed", f"{mark}-1 done"]),
    ),
    Scenario(
        name="child_cancelled_by_an_operator",
        sweep_from=2,
        script=lambda run: [start(flows.parent_handles, True), work(), cancel_the_child(), work()],
        status=("completed", "cancelled"),
        labels=("-0-1", "-0-undo-0", "-1"),
        executions=2,
        times=_once("-0-1", "-0-undo-0", "-1"),
        notes={"cancel": 1},
        of="crash.waiting_leaf",
        check=_ended("completed", "cancelled", lambda mark: ["cancelled", f"{mark}-1 done"]),
    ),
    Scenario(
        name="parent_cancelled_while_its_child_runs",
        sweep_from=2,
        script=lambda run: [_cancelled_meanwhile(run), start(flows.parent), work()],
        status=("cancelled",),
        labels=("-0",),
        executions=2,
        times=_once("-0"),
        notes={"cancel": 1},
        of="crash.parent_of_one",
    ),
    Scenario(
        name="parent_past_its_deadline_with_a_child",
        sweep_from=2,
        script=lambda run: [start(flows.parent_handles, True, timeout=3600.0), work(), later(2), work()],
        status=("timed_out", "cancelled"),
        labels=("-0-1", "-0-undo-0"),
        executions=2,
        times=_once("-0-1", "-0-undo-0"),
        letters=1,
        of="crash.parent_handles",
        check=_ended("timed_out", "cancelled"),
    ),
    Scenario(
        name="child_of_a_parent_that_is_undone",
        sweep_from=2,
        script=lambda run: [start(flows.undone_parent), work(), cancel_and_undo(), work()],
        status=("cancelled",),
        labels=("-child-1", "-child-undo-0", "-undo-0"),
        executions=2,
        times=_once("-child-1", "-child-undo-0", "-undo-0"),
        notes={"cancel": 1},
        of="crash.undone_parent",
    ),
]
