"""migrate with the router: from nothing, on the spine and on a plane, each gets its own tables and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testproject.services.postgres import PostgresServer
from tests.services.databases import ROOT

NAMES = ("spine", "north")


@pytest.fixture
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Two databases without any table, by url."""
    if os.environ["TEST_DB"] == "sqlite":
        yield {name: f"sqlite:///{tmp_path / name}.sqlite3" for name in NAMES}
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    made = {name: f"empty_{os.getpid()}_{name}" for name in NAMES}
    for database in made.values():
        server.create_database(database)
    yield {name: server.url_of(database) for name, database in made.items()}
    for database in made.values():
        server.drop_database(database)


def manage(urls: dict[str, str], *arguments: str) -> str:
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "testproject.settings",
        "DATABASE_URL": urls["spine"],
        "SPINE_DATABASE": "",
        "PLANE_DATABASES": f'{{"north": "{urls["north"]}"}}',
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tables(urls: dict[str, str], name: str) -> set[str]:
    code = f"from django.db import connections; print(*connections[{name!r}].introspection.table_names())"
    alias = code.replace("'spine'", "'default'")
    return {table.removeprefix("django_durable_") for table in manage(urls, "shell", "-v0", "-c", alias).split()}


def test_each_database_gets_its_own_tables(empty: dict[str, str]) -> None:
    manage(empty, "migrate", "-v0")
    manage(empty, "migrate", "-v0", "--database", "north")
    spine, north = tables(empty, "spine"), tables(empty, "north")
    assert {"dispatchhint", "tenantplacement", "dataplane", "executionroute", "operatoraction", "sweepclaim"} <= spine
    assert {"execution", "checkpoint", "message", "outbox", "deadletter", "operatornote", "tenantepoch"} <= north
    assert not {"dispatchhint", "tenantplacement", "dataplane", "executionroute", "operatoraction"} & north
    assert "shop_order" in spine
    assert "shop_order" not in north
    assert "auth_user" not in north
    # Work without a tenant lives on the spine's database.
    assert "execution" in spine
