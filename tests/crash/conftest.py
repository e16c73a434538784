"""The sweep's fixture, and its line in the summary."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.crash.harness import Harness
    from tests.services.databases import DatabaseSource, FreshDatabase
    from tests.services.project import Project


@pytest.fixture
def harness(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    """A harness on a database of its own."""
    # Imported late: this file is read before Django is set up.
    from tests.crash.harness import Harness
    from tests.crash.ledger import VARIABLE

    monkeypatch.setenv(VARIABLE, str(project.folder / "crash-ledger.sqlite3"))
    logging.getLogger("django_durable").setLevel(logging.CRITICAL)  # thousands of deaths, each with a warning
    made = Harness(project.folder)
    yield made
    made.close()
    logging.getLogger("django_durable").setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def two_planes(database_source: DatabaseSource) -> Iterator[dict[str, FreshDatabase]]:
    """Made once: every run empties them."""
    made = {alias: database_source.fresh() for alias in ("far", "near")}
    yield made
    for one in made.values():
        one.drop()


@pytest.fixture
def far_harness(
    project: Project,
    two_planes: dict[str, FreshDatabase],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Harness]:
    """A harness whose executions live on the plane *far*, in another database than the spine; *near* is a third."""
    from django.test import override_settings

    from tests.crash.harness import Harness
    from tests.crash.ledger import VARIABLE
    from tests.crash.places import here
    from tests.planes.conftest import database

    monkeypatch.setenv(VARIABLE, str(tmp_path / "crash-ledger.sqlite3"))
    durable = {"PLANES": {"far": "far", "near": "near"}}
    routers = ["django_durable.routers.PlaneRouter"]
    with (
        database("far", two_planes["far"].url),
        database("near", two_planes["near"].url),
        override_settings(DURABLE=durable, DATABASE_ROUTERS=routers),
    ):
        monkeypatch.setattr(here, "plane", "far")
        monkeypatch.setattr(here, "others", ("near",))
        monkeypatch.setattr(here, "tenant", "acme")
        # Reading the planes anew from time to time would shift the numbers of the boundaries.
        monkeypatch.setattr("django_durable.planes.registry.REFRESH_SECONDS", float("inf"))
        logging.getLogger("django_durable").setLevel(logging.CRITICAL)
        made = Harness(tmp_path)
        yield made
        made.close()
        logging.getLogger("django_durable").setLevel(logging.NOTSET)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [r for outcome in ("passed", "failed") for r in terminalreporter.stats.get(outcome, [])]
    swept = [value for r in reports for name, value in r.user_properties if name == "crash_sweep"]
    if not swept:
        return
    boundaries, runs = sum(boundaries for boundaries, _ in swept), sum(runs for _, runs in swept)
    terminalreporter.write_line(
        f"crash sweep: {boundaries} boundaries, {runs} runs, {len(swept)} sweeps, {os.environ['TEST_DB']}"
    )
