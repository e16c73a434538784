"""A dead worker's last append and a take-over wait for each other: the new owner sees the append or its absence."""

from __future__ import annotations

import os

from django_durable.engine.journal import load
from django_durable.engine.ownership import Refusal
from django_durable.engine.transitions import leave
from django_durable.engine.transitions.leave import Pages
from tests.db.racing import (
    USING,
    Transaction,
    append,
    claim_one,
    journal,
    lapsed,
    owner,
    racers,
    refusal,
    resolved,
    take_over,
    take_over_when_free,
    waiter,
)
from tests.driving import claim, lapse_leases
from tests.services.project import Project


def test_an_append_that_is_open_when_the_lease_lapses_is_seen_by_the_new_owner(project: Project) -> None:
    execution = waiter.start(1)
    with racers() as (zombie, heir):
        old = zombie.run(claim_one)
        heir.run(lapse_leases)
        open_append = Transaction(zombie)
        assert zombie.run(append, old) == 1
        taking = heir.begin(take_over_when_free)
        open_append.commit()

        new = taking.result(60)
        assert list(heir.run(journal, execution)) == [0]
        assert zombie.run(append, old, 1) == 0
        assert zombie.run(refusal, old, 1) is Refusal.LOST
        assert heir.run(append, new, 1) == 1


def test_a_zombie_that_comes_after_the_takeover_writes_nothing(project: Project) -> None:
    execution = waiter.start(1)
    with racers() as (zombie, heir):
        old = zombie.run(claim_one)
        new = heir.run(lambda: take_over(lapsed()))
        seen = heir.run(load, USING, execution.pk)[0]

        assert zombie.run(append, old) == 0
        assert zombie.run(refusal, old) is Refusal.LOST
        assert zombie.run(leave.complete, old, Pages(), output="1") is False
        assert zombie.run(leave.suspend, old, Pages(), wake_at=None, awaiting='["signal:go"]') is False
        assert zombie.run(leave.release, old, Pages()) is False
        assert heir.run(journal, execution) == seen == {}
        assert heir.run(append, new) == 1


if os.environ.get("TEST_DB") == "postgres":

    def test_a_zombie_that_meets_an_open_takeover_waits_and_is_refused(project: Project) -> None:
        execution = waiter.start(1)
        with racers() as (zombie, heir):
            old = zombie.run(claim_one)
            odd = heir.run(lapsed)
            open_takeover = Transaction(heir)
            new = heir.run(take_over, odd)
            appending = zombie.begin(append, old)
            zombie.wait_for_lock(appending)
            open_takeover.commit()

            assert appending.result(60) == 0
            assert zombie.run(refusal, old) is Refusal.LOST
            assert heir.run(journal, execution) == {}
            assert heir.run(append, new) == 1

    def test_nobody_takes_over_while_an_append_is_open(project: Project) -> None:
        execution = waiter.start(1)
        with racers() as (zombie, heir):
            old = zombie.run(claim_one)
            odd = heir.run(lapsed)
            open_append = Transaction(zombie)
            assert zombie.run(append, old) == 1
            assert heir.run(resolved, odd) is None
            heir.run(lapse_leases)
            assert heir.run(claim) == []
            assert heir.run(owner) == old.token
            open_append.commit()

            new = heir.run(take_over_when_free)
            assert new.token == heir.run(owner) != old.token
            assert list(heir.run(journal, execution)) == [0]

    def test_a_release_and_an_open_append_wait_for_each_other(project: Project) -> None:
        execution = waiter.start(1)
        with racers() as (turn, main):
            held = turn.run(claim_one)
            open_append = Transaction(turn)
            assert turn.run(append, held) == 1
            releasing = main.begin(leave.release, held, Pages())
            main.wait_for_lock(releasing)
            open_append.commit()

            assert releasing.result(60) is True
            assert list(main.run(journal, execution)) == [0]
