"""The settings of the process tier, with the workflows of this folder; ``CONN_MAX_AGE`` from the environment."""

from __future__ import annotations

import os

from tests.processes.settings import *  # noqa: F403
from tests.processes.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.field.bench"]
if os.environ.get("CONN_MAX_AGE") == "None":
    DATABASES["default"]["CONN_MAX_AGE"] = None
