"""Every scenario, killed, cut off or frozen at every statement and commit of every process that takes part.

Those of composition, which go through the same statements for the most part, at one in SOME of their boundaries each
time; the others at one in MANY, and at every one of their commits; ``make evidence`` strikes everything.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.crash.harness import Harness
from tests.crash.scenario import Scenario
from tests.crash.scenarios import COMPOSED, SCENARIOS

SOME = min(24, int(os.environ.get("CRASH_SWEEP_EVERY", "24")))
MANY = min(24 if os.environ["TEST_DB"] == "postgres" else 6, SOME)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_crash_at_every_boundary_loses_and_doubles_nothing(
    scenario: Scenario, harness: Harness, record_property: Callable[[str, object], None]
) -> None:
    swept = harness.sweep(scenario, every=SOME if scenario in COMPOSED else MANY)
    record_property("crash_sweep", (len(swept.boundaries), swept.runs))

    assert len(swept.boundaries) > 0
    assert not swept.violations, "\n".join(
        [f"{len(swept.violations)} of {swept.runs} runs of {scenario.name} broke a rule:", *swept.violations]
    )
