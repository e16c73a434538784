"""A plain worker and a beat are enough: every kind of work comes to its end."""

from __future__ import annotations

import pytest

from tests.celery.fleet import Fleet


@pytest.mark.parametrize("pool", ["prefork", "solo"])
def test_steps_timers_signals_and_failures_end_with_a_plain_worker_and_a_beat(fleet: Fleet, pool: str) -> None:
    ran = [fleet.start("quick", f"q{number}") for number in range(5)]
    slept = fleet.start("nap", "n", 0.5)
    asked = fleet.start("ask", "s")
    failed = fleet.start("doomed", "d")
    fleet.worker("-P", pool, "-c", "2")
    fleet.beat()
    fleet.wait_for_status(asked, "waiting")
    asked.signal("answer", "yes")
    assert fleet.outputs(ran) == [f"q{number}-b" for number in range(5)]
    assert fleet.outputs([slept, asked]) == ["n-b", "s-yes"]
    assert "ValueError" in str(fleet.wait_for_status(failed, "failed").error)
    fleet.wait_until_idle()
    assert len(fleet.effects()) == len(set(fleet.effects())) == 14
