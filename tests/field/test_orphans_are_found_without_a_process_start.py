"""Field report B20: the new pods are up before the old ones are killed, so no start-up looks for orphans."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from django_durable.clock import read_now
from tests.driving import USING
from tests.field.rig.yard import Yard

LEASE, TICK = 2.0, 1.0
SLACK = 2.0
"""What a busy machine may add."""


def test_every_orphan_is_taken_over_within_the_lease_and_two_ticks(yard: Yard) -> None:
    yard.durable.update(LEASE_SECONDS=LEASE, TICK_SECONDS=TICK, POLL_SECONDS=TICK)
    old = yard.worker("--concurrency", "3")
    orphans = [yard.start("standing", str(number)) for number in range(3)]
    for number in range(3):
        yard.wait_for_effect(f"begin {number}")
    new = yard.worker("--concurrency", "3")
    yard.wait_for_status(yard.start("three", "idle again"), "completed")
    old.kill()
    killed_at = read_now(USING)
    for number in range(3):
        yard.wait_for_effect(f"begin {number}", times=2)
        yard.open(str(number))
    for orphan in orphans:
        [takeover] = json.loads(yard.wait_for_status(orphan, "completed").takeovers)
        waited = datetime.fromisoformat(takeover["end"]) - killed_at
        assert waited < timedelta(seconds=LEASE + 2 * TICK + SLACK)
    assert new.is_running
