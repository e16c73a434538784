"""The same with a tenant's plane in a database of its own: every statement and commit on either side."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.crash.faults import BETWEEN_DATABASES, SPINE_LOST, Mode
from tests.crash.harness import Harness
from tests.crash.scenarios import scenario
from tests.crash.scenarios_on_planes import ON_PLANES

EVERY = int(os.environ.get("CRASH_SWEEP_EVERY", "40"))
"""One boundary in so many is struck, one commit in a quarter of that; ``make evidence`` strikes every one."""

NAMES = (
    "three_steps",
    "transactional_steps",
    "sleep",
    "signal_after_the_wait",
    "dead_letter",
    "operator_retry",
    "pause_and_resume_while_waiting",
    "cancel_of_a_pending_one",
    "cancel_of_a_running_one",
    "cancel_of_a_waiting_one",
    "start_in_a_rolled_back_transaction",
    "undo_of_a_cancelled_one_that_runs",
    "undo_of_a_failed_run",
    "undo_of_one_past_its_deadline",
    "map_of_three_two_at_a_time",
    "child_completed",
    "debounced_events",
    "retention",
    *(one.name for one in ON_PLANES),
)
SOME = (
    NAMES
    if EVERY == 1
    else (
        "transactional_steps",
        "signal_after_the_wait",
        "operator_retry",
        "bump_with_a_turn_in_flight",
        "move_of_a_waiting_one_with_a_message",
    )
)
"""Of each kind of act one: what the rarer faults are tried on, unless everything is."""
DEATHS = (Mode.KILLED_BEFORE, Mode.KILLED_AFTER, Mode.ERROR_AFTER, Mode.FROZEN)


def _sweep(
    harness: Harness, name: str, modes: tuple[Mode, ...], record_property: Callable[[str, object], None]
) -> None:
    modes = tuple(mode for mode in modes if mode in scenario(name).modes or mode in BETWEEN_DATABASES)
    swept = harness.sweep(scenario(name), modes, every=EVERY)
    record_property("crash_sweep", (len(swept.boundaries), swept.runs))

    assert len(swept.boundaries) > 0
    assert not swept.violations, "\n".join(
        [f"{len(swept.violations)} of {swept.runs} runs of {name} broke a rule:", *swept.violations]
    )


@pytest.mark.parametrize("name", NAMES)
def test_crash_between_plane_and_spine_loses_and_doubles_nothing(
    name: str, far_harness: Harness, record_property: Callable[[str, object], None]
) -> None:
    _sweep(far_harness, name, DEATHS, record_property)


@pytest.mark.parametrize("name", SOME)
def test_an_outage_of_one_plane_costs_it_nothing_but_time(
    name: str, far_harness: Harness, record_property: Callable[[str, object], None]
) -> None:
    _sweep(far_harness, name, (Mode.PLANE_DOWN,), record_property)


@pytest.mark.parametrize("mode", SPINE_LOST, ids=lambda mode: mode.name.lower())
@pytest.mark.parametrize("name", SOME)
def test_a_spine_that_is_lost_or_restored_is_rebuilt(
    name: str, mode: Mode, far_harness: Harness, record_property: Callable[[str, object], None]
) -> None:
    _sweep(far_harness, name, (mode,), record_property)
