"""The same with a tenant's plane in a database of its own: every statement and commit on either side."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.crash.faults import Mode
from tests.crash.harness import Harness
from tests.crash.scenarios import scenario

NAMES = (
    "three_steps",
    "sleep",
    "signal_after_the_wait",
    "operator_retry",
    "cancel_of_a_waiting_one",
    "start_in_a_rolled_back_transaction",
    "undo_of_a_cancelled_one_that_runs",
    "undo_of_a_failed_run",
    "undo_of_one_past_its_deadline",
)
MODES = (Mode.KILLED_BEFORE, Mode.KILLED_AFTER, Mode.ERROR_AFTER, Mode.FROZEN)


@pytest.mark.parametrize("name", NAMES)
def test_crash_between_plane_and_spine_loses_and_doubles_nothing(
    name: str, far_harness: Harness, record_property: Callable[[str, object], None]
) -> None:
    swept = far_harness.sweep(scenario(name), MODES)
    record_property("crash_sweep", (len(swept.boundaries), swept.runs))

    assert len(swept.boundaries) > 0
    assert not swept.violations, "\n".join(
        [f"{len(swept.violations)} of {swept.runs} runs of {name} broke a rule:", *swept.violations]
    )
