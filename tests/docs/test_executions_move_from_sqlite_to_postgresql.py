"""The move of the how-to page, by its own commands: what waited goes on, what had failed can be retried."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.page import blocks
from tests.services.backend import shared_postgres
from tests.services.databases import ROOT, FreshDatabase, SqliteSource
from tests.services.project import Project

PAGE = ROOT / "docs" / "how-to" / "sqlite-to-postgresql.md"

START = """
from testproject.shop.models import Order
from testproject.shop.workflows import fulfil

order = Order.objects.create()
order.lines.create(sku="tea", quantity=2, unit_price="4.50")
print(fulfil.using(key=f"order-{order.pk}").start(order.pk, pause=0).pk)
"""
REVIEW = """
from testproject.shop.workflows import fulfil

execution = fulfil.get("order-1")
assert execution.status == "waiting", execution.status
execution.signal("reviewed", "by ann")
"""
OUTCOME = """
from testproject.shop.models import Order
from testproject.shop.workflows import fulfil

print(fulfil.get("order-1").result(timeout=60)["review"], Order.objects.get().status)
"""


@pytest.fixture
def before(tmp_path: Path) -> FreshDatabase:
    return SqliteSource(tmp_path).fresh()


@pytest.fixture
def after() -> Iterator[FreshDatabase]:
    """An empty database, not even migrated."""
    server, name = shared_postgres(), f"moved_{os.getpid()}"
    yield FreshDatabase(url=server.create_database(name), drop=lambda: server.drop_database(name))
    server.drop_database(name)


def test_executions_move_with_the_commands_of_the_page(
    before: FreshDatabase, after: FreshDatabase, tmp_path: Path
) -> None:
    project = Project(before, tmp_path)
    try:
        execution_id = project.run_python(START).stdout.strip()
        project.run_manage("durable", "worker", "--until-idle")

        dump, create, load, rebuild, doctor = commands(tmp_path)
        project.run_manage(*dump)
        project.own_env["DATABASE_URL"] = after.url
        for command in (create, load, rebuild, doctor):
            project.run_manage(*command)

        project.run_python(REVIEW)
        project.run_manage("durable", "worker", "--until-idle")
        assert project.run_python(OUTCOME).stdout.strip() == "by ann shipped"
        assert execution_id in project.run_manage("durable", "list").stdout
    finally:
        project.end()


def commands(folder: Path) -> list[list[str]]:
    """What the page types, without ``python manage.py``; the file that it writes is put into a folder of the test."""
    lines = [
        line.removeprefix("$ ")
        for block in blocks(PAGE.read_text())
        if block.language == "console"
        for line in block.code.splitlines()
    ]
    typed = [shlex.split(line) for line in lines]
    assert all(words[:2] == ["python", "manage.py"] for words in typed)
    return [[str(folder / word) if word.endswith(".gz") else word for word in words[2:]] for words in typed]
