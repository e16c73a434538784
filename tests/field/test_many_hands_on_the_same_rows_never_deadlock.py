"""Field report B14: claims, ends, cancels, retries, signals and sweeps on the same rows at once.

Defined on PostgreSQL only: SQLite has one lock for the whole database, so nothing there can wait in a circle.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, connections, transaction

from django_durable import Context, Execution, InvalidTransition, SignalTimeout, step, workflow
from django_durable.models import DispatchHint
from django_durable.runtime import sweeps, unknown_work
from django_durable.runtime.turn import run_turn
from django_durable.runtime.worker import Worker
from testproject.shop.models import Order
from tests.driving import USING, claim, lease_of
from tests.field.rig.locks import backend_of_this_thread, stands_at_a_lock
from tests.services.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

EXECUTIONS, SECONDS = 60, 4.0


@step
def effect() -> None: ...


@step(transactional=True)
def effect_within() -> None: ...


@workflow
def busy(ctx: Context, number: int) -> str:
    ctx.step(effect)
    ctx.set_tags(seen=True)
    ctx.step(effect_within)
    for _ in range(3):
        try:
            ctx.wait_for_signal("go", timeout=0.3)
        except SignalTimeout:
            ctx.step(effect)
    if number % 3 == 0:
        raise ValueError("every third one")
    return "done"


ENDS = {
    "cancel": "cancelled",
    "complete": "completed",
    "fail": "failed",
    "suspend": "waiting",
    "release": "pending",
}


@workflow
def settled(ctx: Context, operation: str) -> None:
    if operation == "fail":
        raise ValueError("as asked")
    if operation == "suspend":
        ctx.sleep(600)
    if operation == "release":
        ctx.step(effect)


ran: list[str] = []


@step(transactional=True)
def mark_both(one: int, two: int) -> None:
    ran.append("body")
    for pk in (one, two):
        Order.objects.filter(pk=pk).update(status="seen")


@workflow
def both(ctx: Context, one: int, two: int) -> None:
    ctx.step(mark_both, one, two)


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


class Crowd:
    """Threads that act on whatever execution comes to hand; what they raise is kept."""

    def __init__(self, executions: list[Execution[str]]) -> None:
        self.errors: list[BaseException] = []
        self.acts = 0
        self._executions = executions
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def add(self, act: Callable[[Execution[str]], object], pause: float = 0.0) -> None:
        thread = threading.Thread(target=self._repeat, args=(act, pause))
        self._threads.append(thread)
        thread.start()

    def disperse(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _repeat(self, act: Callable[[Execution[str]], object], pause: float) -> None:
        try:
            while not self._over.wait(pause):
                try:
                    act(Execution.objects.locate(random.choice(self._executions).pk))
                except InvalidTransition:  # refused, because somebody else was first
                    pass
                self.acts += 1
        except BaseException as error:
            self.errors.append(error)
        finally:
            connections.close_all()


def deadlocks() -> int:
    """How many the server has broken up in this database; a session reports what it saw when it ends."""
    connection.close()
    wait_until(lambda: not other_sessions(), within=30)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def other_sessions() -> int:
    """Sessions that have not ended yet."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])


def pause_and_resume(execution: Execution[str]) -> None:
    execution.pause(actor="ann")
    execution.resume(actor="ann")


def retry_several(execution: Execution[str]) -> None:
    """An operator's bulk action."""
    for pk in [execution.pk, *Execution.objects.filter(status="failed").values_list("pk", flat=True)[:5]]:
        Execution.objects.locate(pk).retry(actor="ann")


if connection.vendor == "postgresql":

    def test_nothing_waits_in_a_circle_and_everything_ends(caplog: pytest.LogCaptureFixture) -> None:
        before = deadlocks()
        executions = [busy.start(number) for number in range(EXECUTIONS)]
        workers = [Worker(concurrency=2) for _ in range(3)]
        running = [threading.Thread(target=worker.run) for worker in workers]
        for thread in running:
            thread.start()
        crowd = Crowd(executions)
        crowd.add(lambda e: e.cancel(actor="ann"), pause=0.2)
        crowd.add(lambda e: e.signal("go", 1))
        crowd.add(lambda e: e.signal("go", 1, dedup_key="once"))
        crowd.add(retry_several)
        crowd.add(pause_and_resume)
        crowd.add(lambda e: sweeps.rebuild_everything(USING))
        crowd.add(lambda e: (unknown_work.block_unknown(USING), sweeps.drop_dangling_hints(USING)))
        crowd.add(lambda e: DispatchHint.objects.filter(execution_id=e.pk).delete(), pause=0.05)
        until = time.monotonic() + SECONDS
        wait_until(lambda: time.monotonic() > until or crowd.errors, within=60)
        crowd.disperse()
        sweeps.rebuild_everything(USING)
        assert crowd.errors == []
        assert crowd.acts > 200
        try:
            wait_until(lambda: all_ended(executions), within=60)
            assert all(thread.is_alive() for thread in running)
        finally:
            for worker in workers:
                worker.request_stop()
            for thread in running:
                thread.join(30)
        assert deadlocks() == before
        assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []

    @pytest.mark.parametrize("operation", ["cancel", "complete", "fail", "suspend", "release"])
    def test_an_operation_that_the_server_breaks_up_is_repeated(operation: str) -> None:
        execution = settled.using(key="k").start(operation)
        [claimed] = claim()
        stop = threading.Event()
        if operation == "release":
            stop.set()
        before = deadlocks()
        with crossed(
            lock=lambda: DispatchHint.objects.select_for_update().get(pk=claimed.hint_id),
            then=lambda: Execution.objects.select_for_update().get(pk=execution.pk),
        ):
            if operation == "cancel":
                assert execution.cancel(actor="ann") is True
            else:
                run_turn(claimed, lease_of(claimed), stop)
        assert deadlocks() == before + 1
        row = Execution.objects.locate(execution.pk)
        assert row.status == ENDS[operation]
        assert row.recoveries == 0
        assert DispatchHint.objects.count() == (row.status in ("waiting", "pending"))

    def test_a_transactional_step_that_the_server_breaks_up_is_repeated_whole() -> None:
        one, two = Order.objects.create(), Order.objects.create()
        execution = both.start(one.pk, two.pk)
        [claimed] = claim()
        before = deadlocks()
        with crossed(
            lock=lambda: Order.objects.select_for_update().get(pk=two.pk),
            then=lambda: Order.objects.select_for_update().get(pk=one.pk),
        ):
            run_turn(claimed, lease_of(claimed))
        assert deadlocks() == before + 1
        assert Execution.objects.locate(execution.pk).status == "completed"
        assert Execution.objects.locate(execution.pk).history()[0]["attempts"] == 1
        assert ran == ["body", "body"]
        assert set(Order.objects.values_list("status", flat=True)) == {"seen"}

    @contextmanager
    def crossed(lock: Callable[[], object], then: Callable[[], object]) -> Iterator[None]:
        """Another session takes ``lock``, and wants what the block holds once the block waits for that lock.

        The block's session is the one that looks for circles, so it is the one that the server ends.
        """
        backend = backend_of_this_thread()
        locked = threading.Event()

        def outsider() -> None:
            try:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute("SET LOCAL deadlock_timeout = '60s'")
                    lock()
                    locked.set()
                    wait_until(lambda: stands_at_a_lock(backend), within=30)
                    then()
            finally:
                locked.set()
                connections.close_all()

        thread = threading.Thread(target=outsider)
        with connection.cursor() as cursor:
            cursor.execute("SET deadlock_timeout = '300ms'")
        thread.start()
        assert locked.wait(30)
        try:
            yield
        finally:
            thread.join(30)
            connection.close()

    def all_ended(executions: list[Execution[str]]) -> bool:
        rows = Execution.objects.filter(pk__in=[e.pk for e in executions])
        for paused in rows.filter(status="paused"):
            paused.resume(actor="ann")
        return not rows.active().exists()
