"""The test project with this tier's workflows; ``DURABLE`` and more of ``CELERY_…`` from the environment, as JSON."""

from __future__ import annotations

import json
import os

from testproject.settings import *  # noqa: F403
from testproject.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.celery"]
DURABLE = json.loads(os.environ.get("DURABLE", "{}"))
globals().update(json.loads(os.environ.get("CELERY", "{}")))
