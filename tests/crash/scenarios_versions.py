"""Scenarios of changing code and of lives longer than one history."""

from __future__ import annotations

from typing import Any

from django_durable.models import Execution
from tests.crash import flows, flows_versions
from tests.crash.acts import Act, move, send, start, start_unkeyed, work
from tests.crash.expectation import FIRST_AND_LAST, THREE, done
from tests.crash.life import Violation
from tests.crash.places import rows
from tests.crash.run import Run
from tests.crash.scenario import Scenario
from tests.crash.scenarios_undone import last_first

__all__ = ["VERSIONS"]


def fork(position: int) -> Act:
    """Fork the run's first execution; the client looks whether there is a fork before it tries again."""

    def do(run: Run) -> Any:
        return run.execution().fork(from_position=position, actor="ann", reason="again")

    def forked(run: Run) -> bool:
        number = len(run.ids())
        if number > 2:
            raise Violation(f"{number} executions after one fork")
        return number == 2

    return Act("operator", do, forked)


def _in_one_chain(number: int) -> Any:
    """Each run numbered, each the successor of the one before it, the key on the last."""

    def check(run: Run) -> None:
        chain = list(rows(Execution).order_by("run"))
        if [row.run for row in chain] != list(range(1, number + 1)) or len({row.chain_id for row in chain}) != 1:
            raise Violation(f"runs {[row.run for row in chain]} of {len({row.chain_id for row in chain})} chains")
        if [row.successor_id for row in chain] != [*(row.pk for row in chain[1:]), None]:
            raise Violation("a successor is not the next run")
        if [row.current_key is not None for row in chain] != [False] * (number - 1) + [True]:
            raise Violation("the key is not on the last run")

    return check


def _told_its_parent(run: Run) -> None:
    output = run.execution().output
    if output != ["from the second run", f"{run.mark}-1 done"]:
        raise Violation(f"the parent's output is {output}")


VERSIONS = [
    Scenario(
        name="continue_as_new",
        sweep_from=1,
        script=lambda run: [start(flows_versions.generations), work()],
        status=("completed", "continued"),
        labels=("-0",),
        executions=3,
        output=lambda mark: [3, f"{mark}-0 done"],
        check=_in_one_chain(3),
    ),
    Scenario(
        name="continue_as_new_with_an_unread_signal",
        sweep_from=3,
        script=lambda run: [start(flows_versions.mailbox), send("one"), send("two"), work()],
        status=("completed", "continued"),
        labels=("-1",),
        executions=2,
        output=lambda mark: ["one", "two"],
        check=_in_one_chain(2),
    ),
    Scenario(
        name="undo_over_a_chain",
        sweep_from=1,
        script=lambda run: [start(flows_versions.undone_chain), work()],
        status=("failed", "continued"),
        labels=("-1", "-2", "-3", "-undo-2", "-undo-1"),
        times=dict.fromkeys(("-1", "-2", "-3", "-undo-2", "-undo-1"), 1),
        executions=2,
        maybe_letters=1,
        check=last_first,
    ),
    Scenario(
        name="continue_as_new_under_a_waiting_parent",
        sweep_from=1,
        script=lambda run: [start(flows_versions.parent), work()],
        status=("completed", "continued"),
        labels=("-1", "-child-1", "-child-2"),
        times=dict.fromkeys(("-1", "-child-1", "-child-2"), 1),
        executions=3,
        check=_told_its_parent,
    ),
    Scenario(
        name="patched",
        sweep_from=1,
        script=lambda run: [start(flows_versions.patched), work()],
        labels=("-0", "-3"),
        output=lambda mark: [True, True, True],
    ),
    Scenario(
        name="spend",
        sweep_from=1,
        script=lambda run: [start(flows_versions.spending), work()],
        labels=("-1", "-3"),
        output=lambda mark: [1, 0, "exhausted"],
    ),
    Scenario(
        name="move_to_another_version",
        sweep_from=2,
        script=lambda run: [start(flows_versions.moving_1), work(), move("2"), send("yes"), work()],
        labels=FIRST_AND_LAST,
        output=lambda mark: [f"{mark}-0 done", "yes", f"{mark}-2 done"],
        notes={"move": 1},
    ),
    Scenario(
        name="move_of_a_pending_one",
        sweep_from=1,
        script=lambda run: [start(flows_versions.moving_1), move("2"), work(), send("yes"), work()],
        labels=FIRST_AND_LAST,
        output=lambda mark: [f"{mark}-0 done", "yes", f"{mark}-2 done"],
        notes={"move": 1},
    ),
    Scenario(
        name="fork",
        sweep_from=2,
        script=lambda run: [start_unkeyed(flows.three_steps), work(), fork(1), work()],
        labels=THREE,
        times={"-0": 1},
        executions=2,
        output=done(*THREE),
        notes={"fork": 1},
    ),
]
