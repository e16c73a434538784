"""What the README promises of ``make demo``: workers die in mid-step, and every order is charged exactly once."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from django.db import connection

from testproject.services.postgres import PostgresServer
from testproject.services.valkey import OwnValkey
from tests.services.process import Finished, Process
from tests.services.project import Project

SUCCESS = re.compile(
    r"^Success: orders (?P<orders>\d+), steps recorded (?P<steps>\d+), workers killed in mid-step (?P<kills>\d+),"
    r" bodies begun (?P<begun>\d+), ended (?P<ended>\d+), cut short (?P<cut>\d+),"
    r" begun after their result was recorded 0, [\d.]+ s$",
    re.M,
)
# An order that is charged again under another key, as by an engine whose keys change with the attempt.
CHARGES_TWICE = """
from testproject.shop.provider import PaymentProvider

charge = PaymentProvider.charge


def charge_twice(self, idempotency_key, order_id, amount):
    charge(self, f"{idempotency_key} again", order_id, amount)
    return charge(self, idempotency_key, order_id, amount)


PaymentProvider.charge = charge_twice
"""


@pytest.fixture
def temp_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "temp"
    folder.mkdir()
    return folder


def start_demo(project: Project, temp_folder: Path, *arguments: str, **variables: str) -> Process:
    # It makes a database of its own: on the server that this run tests, or in a file.
    server = project.database.url if connection.vendor == "postgresql" else ""
    variables = {"DATABASE_URL": server, "TMPDIR": str(temp_folder), **variables}
    argv = [sys.executable, "-m", "testproject.demo", "--seed", "1", *arguments]
    return project.spawn(argv, name="demo", **variables)


def databases_of(demo: Process) -> list[str]:
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE datname LIKE %s", [f"demo_{demo.pid}_%"])
        return [name for (name,) in cursor.fetchall()]


def numbers(finished: Finished) -> dict[str, int]:
    assert finished.code == 0, finished.stdout + finished.stderr
    found = SUCCESS.search(finished.stdout)
    assert found, finished.stdout
    return {name: int(number) for name, number in found.groupdict().items()}


def test_every_order_is_charged_once_though_workers_die_in_mid_step(project: Project, temp_folder: Path) -> None:
    demo = start_demo(project, temp_folder, "--orders", "8")
    demo.wait_for_output("killed")
    assert len(databases_of(demo)) == (connection.vendor == "postgresql")
    finished = demo.finish(within=180)
    seen = numbers(finished)
    assert (seen["orders"], seen["steps"]) == (8, 48)
    assert seen["kills"] >= 5
    assert seen["cut"] >= seen["kills"]
    assert seen["begun"] == seen["ended"] + seen["cut"] >= seen["steps"] + seen["kills"]
    assert len(re.findall(r"in the middle of \w+ of order \d+: worker \d+ killed", finished.stdout)) >= seen["kills"]
    assert len(re.findall(r"^ +\d+  completed .* 1 x \d+\.\d\d$", finished.stdout, re.M)) == 8
    assert list(temp_folder.iterdir()) == []
    assert databases_of(demo) == []


def test_it_fails_and_says_which_order_was_charged_twice(project: Project, temp_folder: Path) -> None:
    (temp_folder.parent / "sitecustomize.py").write_text(CHARGES_TWICE)
    path = os.pathsep.join([str(temp_folder.parent), project.env["PYTHONPATH"]])
    finished = start_demo(project, temp_folder, "--orders", "8", PYTHONPATH=path).finish(within=180)
    assert finished.code == 1, finished.stdout + finished.stderr
    (line,) = [line for line in finished.stdout.splitlines() if "charged exactly once" in line]
    assert line.startswith("FAILED") and "order 1 was charged 2 times; order 2 was charged 2 times" in line
    assert "\nFAILED: orders 8" in finished.stdout
    assert "01-worker.log" in " ".join(path.name for path in temp_folder.glob("*/*"))


def test_a_stopped_demo_stops_its_workers(project: Project, temp_folder: Path) -> None:
    demo = start_demo(project, temp_folder, "--orders", "30")
    demo.wait_for_output("killed")
    demo.terminate()
    assert demo.wait() == 128 + 15
    with pytest.raises(ProcessLookupError):
        os.killpg(demo.pid, 0)
    assert list(temp_folder.iterdir()) == []
    assert databases_of(demo) == []


def test_it_does_the_same_on_celery(
    project: Project, temp_folder: Path, postgres_server: PostgresServer, valkey: OwnValkey
) -> None:
    variables = {"DATABASE_URL": postgres_server.url, "BROKER_URL": valkey.url}
    finished = start_demo(project, temp_folder, "--celery", "--orders", "8", **variables).finish(within=240)
    seen = numbers(finished)
    assert seen["kills"] >= 5
    assert re.search(r"order \d+: pool process \d+ killed", finished.stdout)
    assert re.search(r"order \d+: Celery worker \d+ killed with its pool", finished.stdout)


@pytest.mark.parametrize(
    ("arguments", "variables", "text"),
    [
        (["--celery"], {}, "--celery needs PostgreSQL and a broker: set DATABASE_URL and BROKER_URL"),
        (
            [],
            {"DATABASE_URL": "mysql://localhost/shop"},
            "DATABASE_URL begins with 'mysql'. Name a PostgreSQL server",
        ),
        ([], {"DATABASE_URL": "postgresql://me@/x?host=/nowhere"}, "No database could be made on the server"),
        (["--orders", "0"], {}, "'0' is not a whole number from 1 upwards"),
    ],
)
def test_it_says_what_it_needs(
    project: Project, temp_folder: Path, arguments: list[str], variables: dict[str, str], text: str
) -> None:
    finished = start_demo(project, temp_folder, *arguments, **{"DATABASE_URL": "", **variables}).finish()
    assert finished.code == 2
    assert text in finished.stderr
    assert "Traceback" not in finished.stderr
    assert list(temp_folder.iterdir()) == []
