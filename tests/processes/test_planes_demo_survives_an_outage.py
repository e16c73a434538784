"""What the README promises of ``make demo-planes``: a plane goes away and comes back, and nobody else notices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import connection

from tests.processes.test_demo_survives_its_kills import databases_of, numbers, start_demo
from tests.services.project import Project

SMALL = ("--planes", "--tenants", "4", "--outage", "3", "--workers", "2")


@pytest.fixture
def temp_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "temp"
    folder.mkdir()
    return folder


def test_every_effect_happens_once_on_the_tenant_s_own_plane(project: Project, temp_folder: Path) -> None:
    demo = start_demo(project, temp_folder, *SMALL)
    demo.wait_for_output("south is down")
    # South is a server, or a folder, of its own.
    assert len(databases_of(demo)) == (3 if connection.vendor == "postgresql" else 0)
    finished = demo.finish(within=240)
    seen = numbers(finished)
    assert (seen["orders"], seen["steps"]) == (12, 72)
    assert seen["kills"] >= 5
    out = finished.stdout
    assert re.search(r"orders placed: 2, refused since their plane is away: 2$", out, re.M)
    assert re.search(
        r"^ok +south was down for [\d.]+ s: nothing ended there, and orders were refused \(2\)", out, re.M
    )
    told = re.search(r"^ok +every tenant of the other planes .* \((\d+) executions of 2 tenants\)$", out, re.M)
    assert told and int(told[1]) >= 2
    assert re.search(r"^tenant-00  north > west +3 +3 +[1-9]\d* +\d+ +3$", out, re.M)
    assert re.search(r"^tenant-01  south > west +3 +3 +0 +\d+ +3$", out, re.M)
    assert re.search(r"^ok +doctor finds nothing$", out, re.M)
    assert list(temp_folder.iterdir()) == []
    assert databases_of(demo) == []


def test_a_stopped_demo_leaves_no_server_behind(project: Project, temp_folder: Path) -> None:
    demo = start_demo(project, temp_folder, *SMALL)
    demo.wait_for_output("south is down")
    demo.terminate()
    assert demo.wait() == 128 + 15
    assert list(temp_folder.iterdir()) == []
    assert databases_of(demo) == []


def test_planes_and_celery_are_two_demos(project: Project, temp_folder: Path) -> None:
    finished = start_demo(project, temp_folder, "--planes", "--celery", DATABASE_URL="").finish()
    assert finished.code == 2
    assert "not allowed with argument" in finished.stderr
