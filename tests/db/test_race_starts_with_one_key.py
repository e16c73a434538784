"""Any number of starts with one key are one execution, whoever commits first and whatever the isolation."""

from __future__ import annotations

import os
import threading

import pytest
from django.db import connections, transaction

from django_durable import Execution, ExecutionConflict
from django_durable.models import DispatchHint
from tests.db.racing import USING, Transaction, racers, waiter
from tests.services.project import Project


def test_twenty_starts_at_once_are_one_execution(project: Project) -> None:
    with racers(20) as sides:
        barrier = threading.Barrier(len(sides))

        def start() -> tuple[object, bool]:
            barrier.wait(60)
            execution = waiter.using(key="k").start(1)
            return execution.pk, execution.is_new

        found = [future.result(60) for future in [side.begin(start) for side in sides]]

    assert len({pk for pk, _new in found}) == Execution.objects.count() == DispatchHint.objects.count() == 1
    assert sum(new for _pk, new in found) == 1


def test_a_second_start_waits_for_the_first_ones_commit_and_gets_its_execution(project: Project) -> None:
    with racers() as (one, other):
        starting = Transaction(one)
        first = one.run(waiter.using(key="k").start, 1)
        second = other.begin(waiter.using(key="k").start, 1)
        if os.environ["TEST_DB"] == "postgres":
            other.wait_for_lock(second)
        starting.commit()
        assert (second.result(60).pk, second.result().is_new) == (first.pk, False)
        assert DispatchHint.objects.count() == 1


def test_a_second_start_starts_itself_when_the_first_is_rolled_back(project: Project) -> None:
    with racers() as (one, other):
        starting = Transaction(one)
        first = one.run(waiter.using(key="k").start, 1)
        second = other.begin(waiter.using(key="k").start, 2)
        if os.environ["TEST_DB"] == "postgres":
            other.wait_for_lock(second)
        starting.roll_back()
        assert second.result(60).is_new
        assert Execution.objects.get().pk == second.result().pk != first.pk


def test_two_restarts_of_one_key_are_one_new_chain(project: Project) -> None:
    first = waiter.using(key="k").start(1)
    assert first.cancel(actor="ann")
    restart = waiter.using(key="k", on_conflict="restart").start
    with racers() as (one, other):
        starting = Transaction(one)
        winner = one.run(restart, 1)
        second = other.begin(restart, 1)
        if os.environ["TEST_DB"] == "postgres":
            other.wait_for_lock(second)
        starting.commit()
        assert second.result(60).pk == winner.pk != first.pk
        assert Execution.objects.count() == 2


if os.environ.get("TEST_DB") == "postgres":

    @pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
    def test_a_snapshot_that_cannot_see_the_winner_is_a_conflict_and_the_transaction_stays_usable(
        project: Project, level: str
    ) -> None:
        def look_then_start(seen: threading.Event, go_on: threading.Event) -> None:
            with transaction.atomic(using=USING), connections[USING].cursor() as cursor:
                cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
                cursor.execute("SELECT count(*) FROM django_durable_execution")
                seen.set()
                go_on.wait(60)
                with pytest.raises(ExecutionConflict, match="retry the whole transaction"):
                    waiter.using(key="k").start(1)
                with pytest.raises(ExecutionConflict):
                    waiter.using(key="k").start(1)
                waiter.using(key="another").start(1)

        with racers() as (winner, caller):
            seen, go_on = threading.Event(), threading.Event()
            calling = caller.begin(look_then_start, seen, go_on)
            assert seen.wait(60)
            first = winner.run(waiter.using(key="k").start, 1)
            go_on.set()
            calling.result(60)

        assert set(Execution.objects.values_list("key", flat=True)) == {"another", "k"}
        assert Execution.objects.count() == 2
        assert Execution.objects.get(key="k").pk == first.pk

    def test_a_start_in_repeatable_read_that_waits_for_the_winner_is_a_conflict_too(project: Project) -> None:
        def start_in_snapshot() -> str:
            with transaction.atomic(using=USING), connections[USING].cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute("SELECT count(*) FROM django_durable_execution")
                with pytest.raises(ExecutionConflict, match="retry the whole transaction"):
                    waiter.using(key="k").start(1)
                cursor.execute("SELECT 'usable'")
                return str(cursor.fetchone()[0])

        with racers() as (winner, caller):
            starting = Transaction(winner)
            winner.run(waiter.using(key="k").start, 1)
            calling = caller.begin(start_in_snapshot)
            caller.wait_for_lock(calling)
            starting.commit()
            assert calling.result(60) == "usable"
        assert Execution.objects.count() == 1
