"""The sweep's fixture, and its line in the summary."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.crash.harness import Harness
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [r for outcome in ("passed", "failed") for r in terminalreporter.stats.get(outcome, [])]
    swept = [value for r in reports for name, value in r.user_properties if name == "crash_sweep"]
    if not swept:
        return
    boundaries, runs = sum(boundaries for boundaries, _ in swept), sum(runs for _, runs in swept)
    terminalreporter.write_line(
        f"crash sweep: {boundaries} boundaries × modes = {runs} runs, {len(swept)} scenarios, {os.environ['TEST_DB']}"
    )
