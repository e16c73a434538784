"""A worker frozen at any boundary until its lease was over: it finishes the body that it was in, and no more."""

from __future__ import annotations

import pytest

from tests.crash.faults import Mode
from tests.crash.harness import Harness
from tests.crash.scenarios import scenario

NAMES = ("three_steps", "transactional_steps", "retry_after_a_short_delay")


@pytest.mark.parametrize("name", NAMES)
def test_a_thawed_worker_begins_no_other_body(name: str, harness: Harness) -> None:
    swept = harness.sweep(scenario(name), (Mode.FROZEN_FOR_LONG,))

    assert swept.runs > 1
    assert not swept.violations, "\n".join(swept.violations)
