"""``setup`` stands in a module that Django's own start-up imports: no settings, no apps, no database are touched."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.celery.fleet import Fleet
from tests.services.databases import ROOT

CODE = """
import sys
import testproject.celery
from django.apps import apps
from django.conf import settings
from django_durable import celery

assert celery.installed_app() is testproject.celery.app
assert not settings.configured
assert not apps.apps_ready
assert "django.db.models" not in sys.modules
celery.setup(testproject.celery.app)
import django
django.setup()
assert celery.installed_app() is testproject.celery.app
for name in ("django_durable.run", "django_durable.tick"):
    task = testproject.celery.app.tasks[name]
    assert (task.ignore_result, task.max_retries, task.acks_late, task.serializer) == (True, 0, False, "json")
"""


def test_nothing_is_loaded_before_it_is_needed() -> None:
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "testproject.settings", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", CODE], env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_system_checks_have_nothing_to_say(fleet: Fleet) -> None:
    fleet.configure()
    checked = fleet.project.run_manage("check")
    assert "durable.W03" not in checked.stderr
    fleet.settings = {"CELERY_TASK_ALWAYS_EAGER": True}
    fleet.configure()
    assert "durable.W030" in fleet.project.run_manage("check").stderr


def test_an_eager_application_runs_nothing_in_the_caller(fleet: Fleet) -> None:
    fleet.settings = {"CELERY_TASK_ALWAYS_EAGER": True}
    ended = fleet.run("from tests.celery.workflows import quick; print(quick.start('x').status)")
    assert ended.stdout == "pending\n"
    assert fleet.effects() == []
