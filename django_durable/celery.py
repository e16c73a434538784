"""Celery carries the work: ``setup(app)`` in the module that makes the Celery application, and nothing else.

A message is only ever a hint: it holds a hint's id, and losing, repeating or delaying it changes nothing but
latency. Committed work is announced by a thread of its own; the tick, sent by beat, finds what was lost.

The module imports Celery, and no models: ``setup`` may be called before Django's apps are loaded.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any
from uuid import UUID

from celery import Celery, Task, signals
from kombu.exceptions import OperationalError

from django_durable.conf import Config, read_settings
from django_durable.dispatch.broker import EXIT_SECONDS, Broker, BrokerUnavailable, Send
from django_durable.dispatch.nudge import listen

logger = logging.getLogger("django_durable")

RUN, TICK = "django_durable.run", "django_durable.tick"
ENTRY = "django_durable-tick"
"""The name of beat's one entry."""

SOCKET_SECONDS = 2.0
"""Connecting, reading and writing of the thread that sends; nobody waits for it."""

_app: Celery | None = None


def setup(app: Celery) -> None:
    """Have this Celery application carry the work: its tasks, their queues, and beat's one entry.

    Idempotent, and independent of the order: the project may configure the application before or after, and set
    ``beat_schedule`` too. Results are not used. Raises nothing but what Celery raises.
    """
    global _app
    if app is _app:
        return
    options: dict[str, Any] = {
        "base": DurableTask,
        "shared": False,
        "ignore_result": True,
        "store_errors_even_if_ignored": False,
        "serializer": "json",
        "max_retries": 0,
        # A message is a hint: acknowledged early, since what it starts may take long, and lost without harm.
        "acks_late": False,
        "track_started": False,
    }
    app.task(_run, name=RUN, bind=True, **options)
    app.task(_tick, name=TICK, **options)
    app.on_after_configure.connect(_keep_entry, weak=False, dispatch_uid=ENTRY)
    if app.configured:
        _keep_entry(app)
    if _app is None:
        listen(_announce)
        _listen_to_workers()
    _app = app


def installed_app() -> Celery | None:
    """The application that carries the work; ``None`` where ``setup`` was not called."""
    return _app


def _settings() -> Config:
    """The settings, faults replaced by defaults: the system checks report them."""
    return read_settings()[0]
