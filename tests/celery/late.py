"""The application of a project that sets its schedule after everything else."""

from __future__ import annotations

from testproject.celery import app

app.finalize()
app.conf.beat_schedule = {"own": {"task": "own.task", "schedule": 3600.0}}
