"""The shop's Celery application: ``BROKER_URL`` names the broker; results are not used."""

import os

from celery import Celery

from django_durable.celery import setup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")

app = Celery("testproject")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
setup(app)
