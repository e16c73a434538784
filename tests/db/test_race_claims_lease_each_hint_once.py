"""Any number of workers that claim at once lease each hint to one of them, on every backend and option."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import Any

from django.db import connections
from django.db.models import Q

from django_durable import Execution, workflow
from django_durable.authoring.context import Context
from django_durable.clock import read_now
from django_durable.models import DispatchHint
from tests.crash.racer import Racer
from tests.db.racing import USING, Transaction, racers
from tests.driving import claim, lapse_leases
from tests.services.project import Project

WORKERS = 4
SOON = timedelta(seconds=5)  # far less than a lease
HINTS = 1000 if os.environ.get("TEST_DB") == "postgres" else 200


@workflow("racing.one_of_many")
def one_of_many(ctx: Context, number: int) -> int:
    return number


def _start(number: int) -> None:
    for n in range(number):
        one_of_many.start(n)


def _anything_left() -> bool:
    hints = DispatchHint.objects.using(USING)
    return hints.filter(Q(token=None) | Q(due_at__lte=read_now(USING))).exists()


def _claim_all(sides: list[Racer], limit: int) -> list[Any]:
    """What all workers get, each asking until nothing is left."""
    barrier = threading.Barrier(len(sides))

    def ask() -> list[Any]:
        barrier.wait(60)
        mine, until = [], time.monotonic() + 60
        # A pass may find nothing because the others hold it locked at that moment, or have just put it back.
        while _anything_left() and time.monotonic() < until:
            mine += claim(limit)
        return mine

    return [claimed for future in [side.begin(ask) for side in sides] for claimed in future.result(120)]


def test_every_hint_is_leased_to_exactly_one_worker(project: Project) -> None:
    _start(HINTS)
    with racers(WORKERS) as sides:
        claimed = _claim_all(sides, 7)

    assert [n for n in Counter(c.id for c in claimed).values() if n > 1] == []
    tokens = {c.id: c.token for c in claimed}
    assert dict(Execution.objects.filter(status="running").values_list("pk", "lease_token")) == tokens
    assert dict(DispatchHint.objects.exclude(token=None).values_list("execution_id", "token")) == tokens
    assert len(tokens) == HINTS


def test_every_lapsed_lease_is_taken_over_by_exactly_one_worker(project: Project) -> None:
    number = HINTS // 5
    _start(number)
    before = {c.id: c.token for c in claim(number)}
    assert len(before) == number
    lapse_leases()
    with racers(WORKERS) as sides:
        claimed = _claim_all(sides, 5)

    after = {c.id: c.token for c in claimed}
    assert len(claimed) == len(after) == number
    assert not set(before.values()) & set(after.values())
    assert dict(Execution.objects.values_list("pk", "lease_token")) == after
    assert set(Execution.objects.values_list("recoveries", flat=True)) == {1}


def test_a_hint_that_somebody_holds_locked_keeps_nobody_from_the_others(project: Project) -> None:
    _start(3)
    locked = DispatchHint.objects.order_by("due_at")[0]
    if os.environ["TEST_DB"] == "postgres":
        with racers() as (holder, worker):
            holding = Transaction(holder)
            holder.run(lambda: DispatchHint.objects.select_for_update().get(pk=locked.pk))
            assert len(worker.run(claim)) == 2
            holding.roll_back()
            assert [c.hint_id for c in worker.run(claim)] == [locked.pk]
    else:
        with racers() as (holder, worker):
            holding = Transaction(holder)
            holder.run(lambda: DispatchHint.objects.filter(pk=locked.pk).update(failures=0))
            claiming = worker.begin(claim)
            holding.commit()
            assert len(claiming.result(60)) == 3


if os.environ.get("TEST_DB") == "sqlite":

    def test_a_claim_is_atomic_with_djangos_default_options(project: Project) -> None:
        """No WAL, no immediate transactions, Django's five seconds: the worst that a project may have."""
        with connections[USING].cursor() as cursor:
            cursor.execute("PRAGMA journal_mode=DELETE")
        connections[USING].close()
        connections.settings[USING]["OPTIONS"].clear()
        connections[USING].settings_dict["OPTIONS"].clear()
        _start(60)
        with racers(WORKERS) as sides:
            claimed = _claim_all(sides, 3)
            with connections[USING].cursor() as cursor:
                cursor.execute("PRAGMA journal_mode")
                assert cursor.fetchone() == ("delete",)

        assert len(claimed) == len({c.id for c in claimed}) == 60
        assert dict(Execution.objects.values_list("pk", "lease_token")) == {c.id: c.token for c in claimed}
