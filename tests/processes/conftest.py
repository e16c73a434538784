"""The fixture of this tier."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.services.project import Project

if TYPE_CHECKING:
    from tests.processes.shop import Shop


@pytest.fixture
def shop(project: Project, tmp_path: Path) -> Shop:
    """The test project on a fresh database, its workers with this tier's workflows; see ``Shop``."""
    os.environ.setdefault("EFFECTS", str(tmp_path))
    import_module("tests.processes.workflows")
    project.own_env.update(DJANGO_SETTINGS_MODULE="tests.processes.settings", EFFECTS=str(tmp_path))
    made: Shop = import_module("tests.processes.shop").Shop(project, tmp_path)
    return made
