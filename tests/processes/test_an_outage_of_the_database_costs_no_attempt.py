"""PostgreSQL ends sessions, restarts, goes away: no attempt is consumed, no worker ends, work goes on by itself.

The server is one of these tests' own, so they run the same whatever ``TEST_DB`` is; they are collected once, with
PostgreSQL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError, connection
from pytest_django.plugin import DjangoDbBlocker

from testproject.services.postgres import OwnPostgres
from tests.services.databases import PostgresSource
from tests.services.project import Project

if TYPE_CHECKING:
    from tests.processes.shop import Shop


@pytest.fixture
def own_shop(private_postgres: OwnPostgres, tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[Shop]:
    """A shop on a server that the test may stop."""
    os.environ.setdefault("EFFECTS", str(tmp_path))
    import_module("tests.processes.workflows")
    source = PostgresSource(private_postgres)
    project = Project(source.fresh(), tmp_path)
    project.own_env.update(DJANGO_SETTINGS_MODULE="tests.processes.settings", EFFECTS=str(tmp_path))
    with django_db_blocker.unblock(), project.as_default():
        try:
            yield import_module("tests.processes.shop").Shop(project, tmp_path)
        finally:
            project.end()


def end_sessions() -> None:
    """End every session but our own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


if os.environ.get("TEST_DB") == "postgres":

    def test_ended_sessions_repeat_no_step_and_end_no_worker(own_shop: Shop) -> None:
        own_shop.durable["LEASE_SECONDS"] = 20
        workers = [own_shop.worker("--concurrency", "2") for _ in range(2)]
        executions = [own_shop.start("quick", str(number)) for number in range(60)]
        for number in range(8):
            own_shop.project.wait_for(lambda: len(own_shop.effects()) > number * 40, within=30)
            end_sessions()
        for execution in executions:
            row = own_shop.wait_for_status(execution, "completed")
            assert all(entry["attempts"] == 1 for entry in row.history())
        begun = [line for line in own_shop.effects() if line.startswith("begin")]
        assert len(begun) == len(set(begun)) == 180
        assert all(worker.is_running for worker in workers)

    def test_a_restart_in_the_middle_of_a_step_costs_nothing(own_shop: Shop, private_postgres: OwnPostgres) -> None:
        own_shop.durable["LEASE_SECONDS"] = 30
        worker = own_shop.worker()
        execution = own_shop.start("three", "x")
        own_shop.wait_for_effect("begin x-b")
        private_postgres.stop(immediate=True)
        own_shop.open("x-b")
        own_shop.wait_for_effect("end x-b")
        private_postgres.start()
        connection.close()
        own_shop.project.wait_for(lambda: answers(own_shop, execution), within=40)
        done = own_shop.reload(execution)
        assert done.recoveries == 0
        assert [line for line in own_shop.effects() if line.startswith("begin")] == [
            "begin x-a",
            "begin x-b",
            "begin x-c",
        ]
        assert worker.is_running


def answers(shop: Shop, execution: object) -> bool:
    """Whether the server is back and the execution has completed."""
    try:
        return shop.reload(execution).status == "completed"  # type: ignore[arg-type]
    except OperationalError:
        connection.close()
        return False
