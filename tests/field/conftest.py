"""The fixture of the tests that need real worker processes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.services.project import Project

if TYPE_CHECKING:
    from tests.field.rig.yard import Yard


@pytest.fixture
def yard(project: Project, tmp_path: Path) -> Yard:
    """The test project on a fresh database, its workers with the workflows of ``rig``; see ``Yard``."""
    made: Yard = import_module("tests.field.rig.yard").Yard(project, tmp_path)
    return made
