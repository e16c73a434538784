"""Settings of the test project, fit for tests and a demo only. Environment variables choose:

``DATABASE_URL``     ``postgresql://…``; without it an SQLite file
``SQLITE_PATH``      that file, by default ``db.sqlite3`` beside ``manage.py``
``PLANE_DATABASES``  JSON object ``{alias: url}``: more databases, each a data plane
``SPINE_DATABASE``   URL of a database for every table; ``default`` then has none
``BROKER_URL``       Celery's broker; without it Celery is not loaded
``LOG_LEVEL``        of everything that is logged, to stderr; ``WARNING``
``DEBUG``            ``1``: Django's error pages
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from testproject.databases import from_environment

BASE_DIR = Path(__file__).resolve().parent.parent

# A demo on one's own machine: nothing here is fit for a public server.
SECRET_KEY = "for-the-demo-and-the-tests-only-do-not-deploy-this-project"
DEBUG = os.environ.get("DEBUG") == "1"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    *[name for name in ("rest_framework",) if find_spec(name)],
    "django_durable",
    "testproject.shop",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

ROOT_URLCONF = "testproject.urls"
DATABASES = from_environment(BASE_DIR / "db.sqlite3")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "static/"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

PLANES = [alias for alias in DATABASES if alias not in ("default", "spine")]
DURABLE: dict[str, Any] = {"PLANES": {alias: alias for alias in PLANES}} if PLANES else {}
DATABASE_ROUTERS = ["django_durable.routers.PlaneRouter"] if PLANES else []
if "spine" in DATABASES:
    DURABLE["SPINE"] = "spine"
    DATABASE_ROUTERS = [*DATABASE_ROUTERS, "testproject.shop.routers.SpineRouter"]

CELERY_BROKER_URL = os.environ.get("BROKER_URL")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("LOG_LEVEL", "WARNING")},
}
