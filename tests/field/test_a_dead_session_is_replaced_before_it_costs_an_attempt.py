"""Field report B98: a long-lived worker keeps a dead connection, and every later run fails in a millisecond.

``tests/processes/test_an_outage_of_the_database_costs_no_attempt.py`` ends sessions of worker processes under load;
here are sessions that idled for long, of every alias. SQLite has no sessions that could end: PostgreSQL only.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import Any

import pytest
from django.db import connection, connections

from django_durable import Context, Execution, Retry, current_step, step, workflow
from django_durable.models import SweepClaim
from tests.driving import drain
from tests.field.bench.running import embedded_worker
from tests.services.project import Project
from tests.services.waiting import wait_until

ran: list[int] = []


@step
def asks(number: int, alias: str) -> int:
    """User code that trusts its connection, as all user code does."""
    ran.append(number)
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT %s::int", [number])
        return int(cursor.fetchone()[0])


@workflow
def asking(ctx: Context, number: int) -> list[int]:
    return [ctx.step(asks, number, alias) for alias in ("default", "elsewhere")]


def end_sessions() -> int:
    """End every session but this thread's; how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])


def has_ended(execution: Execution[Any]) -> bool:
    return Execution.objects.locate(execution.pk).is_terminal


def last_tick() -> Any:
    return SweepClaim.objects.filter(name="tick").values_list("ran_at", flat=True).first()


if os.environ.get("TEST_DB") == "postgres":

    @pytest.mark.parametrize("kept", [None, 0])
    def test_sessions_that_ended_while_idle_cost_nothing_on_any_alias(
        kept: int | None,
        project: Project,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        settings: Any,
    ) -> None:
        settings.DURABLE = {"LEASE_SECONDS": 60, "TICK_SECONDS": 0.1, "POLL_SECONDS": 0.2}
        entry = {**connections.settings["default"], "CONN_MAX_AGE": kept}
        for alias in ("default", "elsewhere"):
            monkeypatch.setitem(connections.settings, alias, entry)
        ran.clear()
        numbers = iter(range(1000))
        with caplog.at_level(logging.WARNING), embedded_worker(concurrency=2):
            for _ in range(4):
                executions = [asking.start(next(numbers)) for _ in range(6)]
                for execution in executions:
                    wait_until(partial(has_ended, execution), within=20)
                    row = Execution.objects.locate(execution.pk)
                    assert (row.status, row.recoveries) == ("completed", 0)
                    assert [entry["attempts"] for entry in row.history()] == [1, 1]
                assert end_sessions() >= 1
                ticked = last_tick()
                wait_until(lambda: last_tick() > ticked, within=20)
        assert len(ran) == 48
        told = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert told == []

    def test_a_session_that_ends_under_a_body_does_not_repeat_it(
        project: Project, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.DURABLE = {"LEASE_SECONDS": 60, "TICK_SECONDS": 0.1, "POLL_SECONDS": 0.2}
        entry = {**connections.settings["default"], "CONN_MAX_AGE": None}
        monkeypatch.setitem(connections.settings, "default", entry)
        ran.clear()
        with embedded_worker(concurrency=2):
            executions = [ended_under.start(number) for number in range(5)]
            for execution in executions:
                wait_until(partial(has_ended, execution), within=20)
        for number, execution in enumerate(executions):
            row = Execution.objects.locate(execution.pk)
            assert (row.output, row.recoveries) == (number, 0)
            assert [entry["attempts"] for entry in row.history()] == [1]
        assert sorted(ran) == list(range(5))

    @pytest.mark.parametrize("alias", ["default", "elsewhere"])
    def test_a_session_that_ends_before_a_query_of_the_body_costs_that_attempt_and_no_other(
        alias: str, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        entry = {**connections.settings["default"], "CONN_MAX_AGE": None}
        monkeypatch.setitem(connections.settings, "elsewhere", entry)
        execution = ended_before_a_query.start(7, alias)
        try:
            drain()
        finally:
            connections["elsewhere"].close()
            del connections["elsewhere"]
        row = Execution.objects.locate(execution.pk)
        assert (row.output, row.recoveries) == (7, 0)
        assert [entry["attempts"] for entry in row.history()] == [2]


def end_own_session(alias: str) -> None:
    """As an idle firewall does while a body talks to somebody else."""
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        own = cursor.fetchone()[0]
    other = connections[alias].copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [own])
    finally:
        other.close()


@step
def ends_its_session(number: int) -> int:
    ran.append(number)
    end_own_session("default")
    return number


@step(retry=Retry(max_attempts=3, initial=0))
def ends_its_session_and_asks(number: int, alias: str) -> int:
    """Asks over a session that has just ended: the first attempt is lost, and only the first."""
    ran.append(number)
    if current_step().attempt == 1:
        end_own_session(alias)
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT %s::int", [number])
        return int(cursor.fetchone()[0])


@workflow
def ended_under(ctx: Context, number: int) -> int:
    return ctx.step(ends_its_session, number)


@workflow
def ended_before_a_query(ctx: Context, number: int, alias: str) -> int:
    return ctx.step(ends_its_session_and_asks, number, alias)
