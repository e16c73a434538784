"""The database's clock decides: a worker whose clock is ten minutes off neither steals leases nor shifts sleeps."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_durable.clock import read_now
from tests.processes.shop import Shop

OFF = pytest.mark.parametrize("minutes", ["10", "-10"])


@OFF
def test_the_worker_of_these_tests_has_another_time_of_day(shop: Shop, minutes: str) -> None:
    told = shop.project.run_python(
        "from datetime import UTC, datetime\nprint(datetime.now(UTC).timestamp())", CLOCK_OFF_BY_MINUTES=minutes
    )
    ahead = float(told.stdout) - read_now("default").timestamp()
    assert abs(ahead - 60 * float(minutes)) < 60


@OFF
def test_it_steals_no_lease(shop: Shop, minutes: str) -> None:
    shop.worker()
    held = shop.start("three", "x")
    shop.wait_for_effect("begin x-b")
    shop.worker(CLOCK_OFF_BY_MINUTES=minutes)
    # The other worker is at work, and several leases of one second long: the held body is left to its holder.
    for number in range(3):
        shop.wait_for_status(shop.start("nap", f"nap-{number}", 1.0), "completed")
    shop.open("x-b")
    done = shop.wait_for_status(held, "completed")
    assert done.recoveries == 0
    assert shop.effects().count("begin x-b") == 1


@OFF
def test_it_shifts_no_sleep_and_no_run_after(shop: Shop, minutes: str) -> None:
    shop.worker(CLOCK_OFF_BY_MINUTES=minutes)
    short, long = shop.start("nap", "short", 1.5), shop.start("sleeping", "long")
    later = shop.start("quick", "later", run_after=timedelta(minutes=5))
    woken = shop.wait_for_status(short, "completed")
    assert woken.finished_at is not None and woken.started_at is not None
    assert timedelta(seconds=1.5) <= woken.finished_at - woken.started_at < timedelta(minutes=5)
    asleep = shop.wait_for_status(long, "waiting")
    assert asleep.wake_at is not None and asleep.started_at is not None
    assert timedelta(minutes=10) <= asleep.wake_at - asleep.started_at < timedelta(minutes=14)
    assert shop.reload(later).status == "pending"
