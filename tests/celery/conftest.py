"""The fixture of this tier. Nothing of Django is imported before the backend has been chosen."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testproject.services.valkey import OwnValkey
from tests.services.project import Project

if TYPE_CHECKING:
    from tests.celery.fleet import Fleet


@pytest.fixture
def fleet(project: Project, valkey: OwnValkey, tmp_path: Path) -> Fleet:
    """The test project on a fresh database, with a broker and this tier's workflows; see ``Fleet``."""
    os.environ.setdefault("EFFECTS", str(tmp_path))
    import_module("tests.celery.workflows")
    project.own_env.update(
        BROKER_URL=valkey.url, DJANGO_SETTINGS_MODULE="tests.celery.settings", EFFECTS=str(tmp_path)
    )
    made: Fleet = import_module("tests.celery.fleet").Fleet(project, valkey, tmp_path)
    return made
