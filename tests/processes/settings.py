"""The test project with this tier's workflows, and ``DURABLE`` from the environment, as JSON."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

from testproject.settings import *  # noqa: F403
from testproject.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.processes"]
DURABLE = json.loads(os.environ.get("DURABLE", "{}"))
if os.environ.get("PLAIN_SQLITE") == "1":
    # As a project that never read about SQLite: no WAL, no write-locking transactions, the default timeout.
    DATABASES["default"].pop("OPTIONS", None)
if minutes := float(os.environ.get("CLOCK_OFF_BY_MINUTES", "0")):
    # This process's own clock: what Python reads of the time of day, and not what it counts pauses with.
    import time_machine

    time_machine.travel(datetime.now(UTC) + timedelta(minutes=minutes), tick=True).start()
