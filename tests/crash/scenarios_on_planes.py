"""Scenarios of a tenant whose plane is a database of its own: epochs, moves, and what was published twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django_durable.models import Checkpoint
from tests.crash import flows
from tests.crash.acts import (
    Act,
    cancel,
    drain,
    later,
    pause,
    resume,
    retry,
    send,
    start,
    work,
)
from tests.crash.acts_on_planes import bump, move, relay, strand
from tests.crash.expectation import FIRST_AND_LAST, THREE, done
from tests.crash.ledger import Ledger
from tests.crash.life import Violation
from tests.crash.places import rows
from tests.crash.run import Run
from tests.crash.scenario import Scenario
from tests.crash.stage import stage

__all__ = ["ON_PLANES"]


def _signalled(mark: str) -> list[Any]:
    return [f"{mark}-0 done", "yes", f"{mark}-2 done"]


def _meanwhile(run: Run, act: Act) -> Callable[[], None]:
    """Before the first worker: while the busy body runs, another process does this, once."""

    def prepare() -> None:
        stage.during = lambda: run.ensure(act)

    return prepare


def _relay_and_work() -> Act:
    """What is left in the outbox is published, and another worker looks for something to do."""

    def do(run: Run) -> None:
        relay().do(run)
        drain()

    return Act("sweeper", do, relay().done)


def _begun_twice(run: Run) -> None:
    """The body in which the tenant was fenced returned to nobody: its step ran again."""
    calls = [call for call in Ledger().calls() if call.label == f"{run.mark}-1"]
    recorded = rows(Checkpoint).filter(kind="step", position=1, attempt=1).count()
    if len(calls) < 2 or recorded != 1:
        raise Violation(f"a fenced turn recorded its result: {len(calls)} calls, {recorded} records")


def _lease_was_kept(run: Run) -> None:
    """Nobody took over from a worker that lives: only a worker's death may cost a recovery."""
    struck = run.fault.struck
    if struck is not None and struck.role == "worker":
        return
    if run.execution().recoveries:
        raise Violation("a live lease was taken away")


ON_PLANES = [
    Scenario(
        name="intent_published_again_under_a_live_lease",
        script=lambda run: [_meanwhile(run, _relay_and_work()), start(flows.stopped), work()],
        labels=THREE,
        output=done(*THREE),
        check=_lease_was_kept,
    ),
    Scenario(
        name="stranded_intent",
        sweep_from=2,
        script=lambda run: [start(flows.three_steps), strand, relay(), work()],
        labels=THREE,
        output=done(*THREE),
    ),
    Scenario(
        name="bump_with_a_turn_in_flight",
        sweep_from=2,
        script=lambda run: [_meanwhile(run, bump()), start(flows.stopped), work(), later(1), work()],
        labels=THREE,
        output=done(*THREE),
        repeats=1,
        check=_begun_twice,
    ),
    Scenario(
        name="bump_while_waiting_for_a_message",
        sweep_from=2,
        script=lambda run: [start(flows.one_signal), work(), bump(), send("yes"), work()],
        labels=FIRST_AND_LAST,
        output=_signalled,
    ),
    Scenario(
        name="bump_while_waiting_for_a_time",
        sweep_from=2,
        script=lambda run: [start(flows.sleeper), work(), bump(), work(), later(2), work()],
        labels=FIRST_AND_LAST,
        output=done(*FIRST_AND_LAST),
    ),
    Scenario(
        name="bump_of_a_stranded_intent",
        sweep_from=2,
        script=lambda run: [start(flows.three_steps), strand, bump(), work()],
        labels=THREE,
        output=done(*THREE),
    ),
    Scenario(
        name="bump_of_a_dead_letter_that_is_retried",
        sweep_from=2,
        script=lambda run: [start(flows.doomed), work(), bump(), retry(), work()],
        labels=("-0", "-1", "-2", "-3"),
        output=done("-0", "-2", "-3"),
        letters=1,
        notes={"retry": 1},
        reopens=True,
        repeats=1,
    ),
    Scenario(
        name="move_of_a_waiting_one_with_a_message",
        sweep_from=3,
        script=lambda run: [
            *(start(flows.two_signals), send("one"), work(), move("near")),
            *(work(), send("two"), work()),
        ],
        labels=("-0", "-2", "-4"),
        output=lambda mark: [f"{mark}-0 done", "one", f"{mark}-2 done", "two", f"{mark}-4 done"],
        moves=1,
    ),
    Scenario(
        name="move_of_a_stranded_intent_and_an_unread_message",
        sweep_from=3,
        script=lambda run: [start(flows.one_signal), send("yes"), strand, move("near"), work()],
        labels=FIRST_AND_LAST,
        output=_signalled,
        moves=1,
    ),
    Scenario(
        name="move_of_a_sleeping_one",
        sweep_from=2,
        script=lambda run: [start(flows.sleeper), work(), move("near"), work(), later(2), work()],
        labels=FIRST_AND_LAST,
        output=done(*FIRST_AND_LAST),
        moves=1,
    ),
    Scenario(
        name="move_of_a_paused_one",
        sweep_from=3,
        script=lambda run: [
            *(start(flows.one_signal), work(), pause(), move("near")),
            *(send("yes"), resume(), work()),
        ],
        labels=FIRST_AND_LAST,
        output=_signalled,
        notes={"pause": 1, "resume": 1},
        moves=1,
    ),
    Scenario(
        name="move_of_a_dead_letter_that_is_retried",
        sweep_from=2,
        script=lambda run: [start(flows.doomed), work(), move("near"), retry(), work()],
        labels=("-0", "-1", "-2", "-3"),
        output=done("-0", "-2", "-3"),
        letters=1,
        notes={"retry": 1},
        reopens=True,
        repeats=1,
        moves=1,
    ),
    Scenario(
        name="move_with_a_turn_in_flight",
        sweep_from=2,
        script=lambda run: [_meanwhile(run, move("near")), start(flows.stopped), work(), later(1), work()],
        labels=THREE,
        output=done(*THREE),
        repeats=1,
        moves=1,
        check=_begun_twice,
    ),
    Scenario(
        name="move_and_back",
        sweep_from=3,
        script=lambda run: [
            *(start(flows.one_signal), work(), move("near"), move("far")),
            *(send("yes"), work()),
        ],
        labels=FIRST_AND_LAST,
        output=_signalled,
        moves=2,
    ),
    Scenario(
        name="cancel_after_a_move",
        sweep_from=3,
        script=lambda run: [start(flows.one_signal), work(), move("near"), cancel(), work()],
        status=("cancelled",),
        labels=("-0",),
        notes={"cancel": 1},
        moves=1,
    ),
]
