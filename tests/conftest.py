"""Fixtures of every tier. See ``tests/services`` for what they are made of."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from pytest_django.plugin import DjangoDbBlocker

from testproject.services.postgres import OwnPostgres, PostgresServer
from testproject.services.valkey import OwnValkey
from tests.services.backend import choose_backend, database_alias, forget_backend, shared_postgres
from tests.services.databases import DatabaseSource, FreshDatabase, PostgresSource, SqliteSource
from tests.services.project import Project


def pytest_configure(config: pytest.Config) -> None:
    if not config.option.help:
        choose_backend()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where the layout has two databases, whatever uses the database may use both."""
    if database_alias() == "default":
        return
    from django.test import TransactionTestCase

    both = {"default", database_alias()}
    TransactionTestCase.databases = both
    for item in items:
        mark = item.get_closest_marker("django_db")
        if mark is not None or {"db", "transactional_db", "durable", "durable_worker"} & set(item.fixturenames):  # type: ignore[attr-defined]
            options = {"transaction": "transactional_db" in item.fixturenames} if mark is None else mark.kwargs  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.django_db(**{"databases": both, **options}), append=False)


def pytest_unconfigure(config: pytest.Config) -> None:
    forget_backend()


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer:
    """A PostgreSQL server, whatever ``TEST_DB`` is; other tests use it too, so nobody stops it."""
    return shared_postgres()


@pytest.fixture
def private_postgres() -> Iterator[OwnPostgres]:
    """A PostgreSQL server of this test alone, to be stopped, crashed and started again."""
    server = OwnPostgres(durable=False)
    yield server
    server.remove()


@pytest.fixture(scope="session")
def _valkey_server() -> Iterator[OwnValkey]:
    server = OwnValkey()
    yield server
    server.remove()


@pytest.fixture
def valkey(_valkey_server: OwnValkey) -> OwnValkey:
    """A broker, empty at the start of each test and running, whatever the test before did to it."""
    if not _valkey_server.place.is_running:
        _valkey_server.start()
    _valkey_server.flush()
    return _valkey_server


@pytest.fixture(scope="session")
def database_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseSource]:
    """Fresh databases of the backend that this run tests."""
    if os.environ["TEST_DB"] == "sqlite":
        yield SqliteSource(tmp_path_factory.mktemp("databases"))
        return
    source = PostgresSource(shared_postgres())
    yield source
    source.remove()


@pytest.fixture
def fresh_database(database_source: DatabaseSource) -> Iterator[Callable[[], FreshDatabase]]:
    """A function that returns one more migrated, empty database; all of them are gone after the test."""
    made: list[FreshDatabase] = []

    def make() -> FreshDatabase:
        made.append(database_source.fresh())
        return made[-1]

    yield make
    for database in made:
        database.drop()


@pytest.fixture
def project(
    request: pytest.FixtureRequest,
    fresh_database: Callable[[], FreshDatabase],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Project]:
    """The test project on a fresh database, for real processes; this process's ``default`` is there too.

    No transaction is open and nothing is rolled back: what a test writes is committed, and other processes
    see it.
    """
    if {"db", "transactional_db"} & set(request.fixturenames) or request.node.get_closest_marker("django_db"):
        raise pytest.UsageError("project brings a database of its own; leave out the django_db mark and db fixtures.")
    project = Project(fresh_database(), tmp_path)
    for name in ("PROVIDER_LEDGER", "MAILBOX"):
        monkeypatch.setenv(name, project.own_env[name])
    with django_db_blocker.unblock(), project.as_default():
        try:
            yield project
        finally:
            project.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the processes of a failed test have written."""
    report = yield
    project = getattr(item, "funcargs", {}).get("project")
    if report.when == "call" and report.failed and isinstance(project, Project):
        for process in project.processes:
            report.sections.append((f"stderr of {process.name} ({' '.join(process.argv[1:])[:200]})", process.stderr))
    return report
