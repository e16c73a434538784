"""Two beats for 200 days over changes of the clocks in five zones: one fire a nominal time, whatever the policies."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from datetime import UTC, datetime, time, timedelta

import pytest
from django.db import connections

from django_durable import Execution
from django_durable.clock import read_now
from django_durable.models import CatchUp, Overlap, Schedule, ScheduleFire
from django_durable.runtime.schedule_sweeps import fire_schedules
from tests.driving import USING, drain
from tests.flow.flows import later, move_to, report
from tests.flow.wall_clock import daily

pytestmark = pytest.mark.django_db(transaction=True)

ZONES = {
    "Europe/Berlin": time(2, 30),
    "America/New_York": time(2, 0),
    "Australia/Lord_Howe": time(1, 45),
    "Pacific/Auckland": time(2, 45),
    "America/Havana": time(0, 30),
}
DAYS = int(os.environ.get("SCHEDULE_DAYS", "200" if os.environ["TEST_DB"] == "sqlite" else "50"))
SUNDAY_AND_MONDAY = frozenset({6, 0})


class Beats:
    """Two that tick at the same moment, each with a connection of its own."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self._go, self._done = threading.Barrier(3), threading.Barrier(3)
        self._end = False
        self._threads = [threading.Thread(target=self._beat) for _ in range(2)]
        for thread in self._threads:
            thread.start()

    def tick(self) -> None:
        self._go.wait(60)
        self._done.wait(120)

    def close(self) -> None:
        self._end = True
        self._go.wait(60)
        for thread in self._threads:
            thread.join(60)

    def _beat(self) -> None:
        while True:
            self._go.wait(300)
            if self._end:
                connections[USING].close()
                return
            try:
                while fire_schedules(USING):
                    pass
            except BaseException as error:
                self.errors.append(error)
            self._done.wait(120)


def next_autumn() -> datetime:
    """From here on 200 days see every change of the northern winter and the southern summer."""
    now = read_now(USING)
    start = datetime(now.year, 9, 20, tzinfo=UTC)
    return start if start > now else start.replace(year=now.year + 1)


def test_two_beats_fire_each_time_once() -> None:
    move_to(next_autumn())
    for zone, at in ZONES.items():
        for overlap in Overlap.values:
            for catch_up in CatchUp.values:
                report.schedule(
                    f"{zone} {overlap} {catch_up}",
                    cron=f"{at.minute} {at.hour} * * SUN,MON",
                    timezone=zone,
                    overlap=overlap,
                    catch_up=catch_up,
                )
    beats = Beats()
    try:
        beats.tick()
        start = read_now(USING)
        simulate(beats, start + timedelta(days=DAYS))
    finally:
        beats.close()
    assert beats.errors == []
    check(start, read_now(USING))


def simulate(beats: Beats, until: datetime) -> None:
    """Beats that are there at most times, and away for days now and then; workers that lag behind."""
    chance = random.Random(57)
    while read_now(USING) < until:
        away = chance.random() < 0.1
        later(hours=chance.uniform(60, 200) if away else chance.uniform(2, 30))
        beats.tick()
        if chance.random() < 0.7:
            drain(most=100_000)
            beats.tick()


def check(start: datetime, end: datetime) -> None:
    expected = {zone: daily(zone, at, start, end, SUNDAY_AND_MONDAY) for zone, at in ZONES.items()}
    started: Counter[str] = Counter()
    for schedule in Schedule.objects.using(USING).filter(workflow="flow.report"):
        fires = list(ScheduleFire.objects.using(USING).filter(schedule_id=schedule.pk).order_by("nominal_at"))
        assert [fire.nominal_at for fire in fires] == expected[schedule.timezone], schedule.name
        began = [fire for fire in fires if fire.outcome == "started"]
        assert all(fire.execution_id is None for fire in fires if fire not in began), schedule.name
        keys = {f"schedule {schedule.name}:{fire.nominal_at.isoformat()}" for fire in began}
        executions = Execution.objects.using(USING).filter(pk__in=[fire.execution_id for fire in began])
        assert set(executions.values_list("key", flat=True)) == keys, schedule.name
        assert set(executions.values_list("scheduled_for", flat=True)) == {fire.nominal_at for fire in began}
        started[f"{schedule.overlap} {schedule.catch_up}"] += len(began)
    assert Execution.objects.using(USING).count() == sum(started.values())
    # Each policy did what it is for.
    assert started["allow all"] == sum(len(times) for times in expected.values())
    assert started["allow none"] < started["allow latest"] < started["allow all"]
    assert started["skip all"] < started["queue all"]
    assert started["cancel_running all"] == started["allow all"]
