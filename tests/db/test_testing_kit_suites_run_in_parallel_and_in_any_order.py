"""A project's suite that uses the kit, under Django's own runner: several processes, random order, empty tables."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.services.databases import ROOT
from tests.services.process import Finished
from tests.services.project import Project

# Django's default for SQLite is a database in memory. It is copied for each process; the test project's own, a file
# in WAL mode, cannot be: Django copies that without what is still in the log.
IN_MEMORY = """
from testproject.settings import *

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
"""


def run_suite(project: Project, folder: Path, *options: str) -> Finished:
    # One database, whatever this run's layout is: the suite is the project's.
    variables = {"PYTHONWARNINGS": "error", "DATABASE_URL": project.database.url, "SPINE_DATABASE": ""}
    if os.environ["TEST_DB"] == "sqlite":
        (folder / "in_memory_settings.py").write_text(IN_MEMORY)
        variables |= {
            "DJANGO_SETTINGS_MODULE": "in_memory_settings",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        }
    return project.run_manage("test", "testproject", *options, within=120, **variables)


@pytest.mark.parametrize("order", ["--shuffle", "--reverse"])
def test_the_shop_s_suite_passes(project: Project, tmp_path: Path, order: str) -> None:
    finished = run_suite(project, tmp_path, "--parallel", "2", order)
    assert re.search(r"Ran \d+ tests in .*\n\nOK\n", finished.stderr), finished.stderr


def test_a_workflow_of_days_takes_less_than_a_second(project: Project, tmp_path: Path) -> None:
    name = "test_an_order_is_charged_reviewed_two_days_later_and_shipped"
    finished = run_suite(project, tmp_path, "-k", name, "-v", "2")
    taken = re.search(r"Ran 1 test in ([\d.]+)s\n\nOK\n", finished.stderr)
    assert taken and float(taken[1]) < 1, finished.stderr
