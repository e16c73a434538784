"""The test project with this tier's workflows, and ``DURABLE`` from the environment, as JSON."""

from __future__ import annotations

import json
import os

from testproject.settings import *  # noqa: F403
from testproject.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.processes"]
DURABLE = json.loads(os.environ.get("DURABLE", "{}"))
if os.environ.get("PLAIN_SQLITE") == "1":
    # As a project that never read about SQLite: no WAL, no write-locking transactions, the default timeout.
    DATABASES["default"].pop("OPTIONS", None)
