"""Six workers share two server sessions through a transaction-pooling proxy, and processes are killed in mid-step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from django_durable.models import DispatchHint
from testproject.services.pooler import Pooler
from testproject.services.postgres import PostgresServer
from tests.processes.shop import Shop
from tests.services.databases import FreshDatabase, PostgresSource

WORKERS = 6
EXECUTIONS = 30


@pytest.fixture
def pooler(postgres_server: PostgresServer) -> Iterator[Pooler]:
    made = Pooler(postgres_server.url, size=2)
    yield made
    made.stop()


@pytest.fixture
def fresh_database(postgres_server: PostgresServer, pooler: Pooler) -> Iterator[Callable[[], FreshDatabase]]:
    """Whatever ``TEST_DB`` is, a database of PostgreSQL that everybody reaches through the pooler."""
    source = PostgresSource(postgres_server)
    fresh = source.fresh()
    name = fresh.url.split("?")[0].rpartition("/")[2]
    yield lambda: FreshDatabase(url=pooler.url_of(name), drop=fresh.drop)
    fresh.drop()
    source.remove()


def test_every_step_runs_once_and_every_execution_ends(shop: Shop, pooler: Pooler) -> None:
    executions = [shop.start("quick", str(number)) for number in range(EXECUTIONS)]
    held = shop.start("three", "held")
    workers = [shop.worker("--concurrency", "2") for _ in range(WORKERS)]
    for number in range(3):
        shop.wait_for_effect("begin held-b", times=number + 1)
        [victim] = [worker for worker in workers if worker.is_running and worker.pid == holder(shop)]
        victim.kill()
    shop.open("held-b")
    for execution in [*executions, held]:
        shop.wait_for_status(execution, "completed", within=60)
    assert shop.effects().count("begin held-b") == 4
    assert shop.effects().count("begin held-a") == 1
    ended = [line for line in shop.effects() if line.startswith("end")]
    assert {f"end {number}-c" for number in range(EXECUTIONS)} <= set(ended)
    assert not DispatchHint.objects.exists()
    assert pooler.transactions > 3 * EXECUTIONS


def holder(shop: Shop) -> int:
    """The process that began the held body last."""
    return int([line for line in shop.lines() if line.endswith("begin held-b")][-1].split()[0])


def test_what_one_client_leaves_in_its_session_another_one_meets(pooler: Pooler) -> None:
    """The proxy is one that would show it: sessions change hands between transactions, and nothing resets them."""
    with psycopg.connect(pooler.url, autocommit=True) as one, psycopg.connect(pooler.url, autocommit=True) as two:
        sessions = {one.execute("SELECT pg_backend_pid()").fetchone() for _ in range(4)}
        assert len(sessions) == 2
        for _ in range(2):
            one.execute("SET application_name = 'left behind'")
        assert two.execute("SHOW application_name").fetchone() == ("left behind",)
        with one.transaction():
            inside = {one.execute("SELECT pg_backend_pid()").fetchone() for _ in range(4)}
        assert len(inside) == 1
