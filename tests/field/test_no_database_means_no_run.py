"""Field report B18: whoever cannot ask whether it may run something does not run it, says so once, and asks again.

The outage of a real server is defined on PostgreSQL only: SQLite has no server that could be away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import override_settings
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from django_durable import Context, Execution, step, workflow
from django_durable.engine.lease_state import Lease
from django_durable.runtime.lease import LeaseKeeper
from django_durable.runtime.sweeper import Sweeper
from django_durable.runtime.turn import run_turn
from django_durable.runtime.worker import Worker
from testproject.services.postgres import OwnPostgres
from tests.driving import USING, claim, drain, lapse_leases
from tests.field.rig.yard import Yard
from tests.services.databases import PostgresSource
from tests.services.project import Project
from tests.services.waiting import wait_until

ERRORS = [OperationalError("the server is gone"), InterfaceError("connection already closed")]
ran: list[str] = []


@step
def effect(text: str) -> None:
    ran.append(text)


@workflow
def two(ctx: Context) -> None:
    ctx.step(effect, "first")
    ctx.step(effect, "second")


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@contextmanager
def outage(error: Exception, statements: int) -> Iterator[None]:
    """The next statements of this thread's connection fail."""
    left = [statements]

    def refuse(execute: Callable[..., Any], *arguments: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return execute(*arguments)

    with connection.execute_wrapper(refuse):
        yield
    assert left[0] < 0, "the outage was not noticed to its end"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_worker_that_cannot_claim_runs_nothing_and_says_so_once_an_outage(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    for outages in (1, 2):
        execution = two.start()
        with outage(error, statements=5):
            Worker(concurrency=1, until_idle=True).run()
        assert caplog.text.count("claiming failed") == outages
        done = Execution.objects.locate(execution.pk)
        assert (done.status, done.recoveries, done.takeovers) == ("completed", 0, "[]")
        assert ran == ["first", "second"] * outages


def test_a_sweeper_that_cannot_ask_goes_on_and_says_so_once_an_outage(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    script = iter([*ERRORS, *ERRORS, None, *ERRORS, None])
    ticks: list[Exception | None] = []

    def tick() -> None:
        ticks.append(next(script, None))
        if isinstance(ticks[-1], Exception):
            raise ticks[-1]

    monkeypatch.setattr("django_durable.runtime.sweeper.tick", tick)
    sweeper = Sweeper(USING)
    with override_settings(DURABLE={"TICK_SECONDS": 0.01}):
        sweeper.start()
        wait_until(lambda: len(ticks) >= 9, within=30)
        sweeper.close()
    assert caplog.text.count("the tick failed") == 2


@pytest.mark.django_db
def test_a_lease_that_nobody_could_renew_begins_no_body() -> None:
    execution = two.start()
    [claimed] = claim()
    run_turn(claimed, Lease(claimed.hint_id, claimed.token, ends=time.monotonic()))
    assert ran == []
    assert Execution.objects.locate(execution.pk).history() == []
    lapse_leases()
    drain()
    assert ran == ["first", "second"]


@pytest.mark.django_db
def test_a_renewal_that_fails_is_no_renewal(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[int] = []

    def renew(*arguments: Any) -> Any:
        tried.append(1)
        raise ERRORS[0]

    monkeypatch.setattr("django_durable.runtime.lease.renew", renew)
    two.start()
    [claimed] = claim()
    claimed.lease_seconds = 0.3
    keeper = LeaseKeeper(0.3)
    lease = keeper.hold(claimed)
    wait_until(lambda: not lease.held, within=30)
    wait_until(lambda: len(tried) >= 3, within=30)
    keeper.close()
    assert not lease.lost  # nobody else has it, as far as anybody knows
    assert caplog.text.count("leases could not be renewed") == 1
    run_turn(claimed, lease)
    assert ran == []


if connection.vendor == "postgresql":

    @pytest.fixture
    def own_yard(private_postgres: OwnPostgres, tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[Yard]:
        """A yard on a server that the test may stop."""
        project = Project(PostgresSource(private_postgres).fresh(), tmp_path)
        with django_db_blocker.unblock(), project.as_default():
            try:
                yield Yard(project, tmp_path)
            finally:
                project.end()

    def test_what_falls_due_while_the_server_is_away_runs_once_when_it_is_back(
        own_yard: Yard, private_postgres: OwnPostgres
    ) -> None:
        workers = own_yard.workers(4, "--concurrency", "2")
        naps = [own_yard.start("nap", str(number), 3.0) for number in range(6)]
        for nap in naps:
            own_yard.wait_for_status(nap, "waiting")
        last = max(moment for nap in map(own_yard.reload, naps) if (moment := nap.wake_at) is not None)
        private_postgres.stop(immediate=True)
        wait_until(lambda: timezone.now() > last)
        assert own_yard.effects() == []
        private_postgres.start()
        connection.close()
        own_yard.project.wait_for(lambda: len(own_yard.effects()) >= len(naps), within=40)
        for nap in naps:
            assert own_yard.wait_for_status(nap, "completed").recoveries == 0
        assert sorted(own_yard.begun()) == [str(number) for number in range(6)]
        assert all(worker.is_running for worker in workers)
        for worker in workers:
            assert worker.stderr.count("claiming failed") <= 1
            assert worker.stderr.count("the tick failed") <= 1
            assert "Traceback" not in worker.stderr
