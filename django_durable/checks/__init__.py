"""The system checks: what a project can get wrong, told by ``manage.py check`` before it hurts.

Each id belongs to one fault and is explained in the checks reference. The checks look at settings and at what
is loaded already; only ``check_databases`` sends a query, and only when Django is asked to (``migrate``,
``check --database``). What lives on a higher floor (the registry, Celery) is looked up in ``sys.modules``:
what is not loaded has nothing wrong with it, and a check must not be what loads it.
"""

from __future__ import annotations

from django.core import checks

from django_durable.checks.celery_app import check_celery
from django_durable.checks.databases import check_database_options, check_databases
from django_durable.checks.definitions import check_definitions
from django_durable.checks.project import check_project
from django_durable.checks.settings import check_settings

__all__ = ["TAG", "register"]

TAG = "durable"
"""``manage.py check --tag durable`` runs the checks that send no query."""


def register() -> None:
    """Make the checks known to Django. Importing this package does it; a repetition changes nothing."""
    for check in (check_settings, check_project, check_database_options, check_celery, check_definitions):
        checks.register(check, TAG)
    # Not under our own tag: newer Djangos give a tagged run every database, and this one would then connect.
    checks.register(check_databases, checks.Tags.database)


register()
