"""Celery, where the project has called ``django_durable.celery.setup``; never imported from here."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core import mail
from django.core.checks import CheckMessage, Warning
from django.utils.translation import gettext as _


def check_celery(app_configs: object, **kwargs: Any) -> list[CheckMessage]:
    """The configuration of the Celery application that carries the work, if there is one."""
    module = sys.modules.get("django_durable.celery")
    app = module.installed_app() if module is not None else None
    return [] if app is None else [*_eager_tasks(app), *_missing_beat_entry(app)]


def _eager_tasks(app: Any) -> Iterator[CheckMessage]:
    eager = app.conf.task_always_eager or getattr(settings, "CELERY_TASK_ALWAYS_EAGER", False)
    if eager and not _in_tests():
        yield Warning(
            _("Celery's task_always_eager is on: executions run inside the request that starts them."),
            hint=_("Turn it off; without a broker, run 'manage.py durable worker' and leave out setup(app)."),
            id="durable.W030",
        )


def _in_tests() -> bool:
    """Whether Django's ``setup_test_environment`` ran: it is what replaces the outbox."""
    return hasattr(mail, "outbox")


def _missing_beat_entry(app: Any) -> Iterator[CheckMessage]:
    if not any(map(_is_tick, app.conf.beat_schedule.values())):
        yield Warning(
            _("Celery's beat_schedule has no entry for the durable tick: timers and lost messages wait."),
            hint=_("Call django_durable.celery.setup(app), and keep its entry when you set beat_schedule."),
            id="durable.W031",
        )


def _is_tick(entry: Any) -> bool:
    task = entry.get("task") if isinstance(entry, Mapping) else getattr(entry, "task", None)
    return isinstance(task, str) and task.startswith("django_durable.") and task.endswith(".tick")
