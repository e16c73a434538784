"""A spine and two planes, each a fresh database of the backend that this run tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from django.db import connections
from django.db.utils import load_backend
from django.test import override_settings
from pytest_django.plugin import DjangoDbBlocker

from testproject.databases import from_url
from tests.services.backend import database_alias
from tests.services.databases import DatabaseSource, FreshDatabase

SPINE, NORTH, SOUTH = database_alias(), "north", "south"


@contextmanager
def database(alias: str, url: str) -> Iterator[None]:
    """Make a database known to this process under an alias, or put another one in its place."""
    entry = connections.configure_settings({"default": from_url(url), alias: from_url(url)})[alias]
    old_entry = connections.settings.get(alias)
    old_connection = connections[alias] if old_entry is not None else None
    connections.settings[alias] = entry
    connections[alias] = load_backend(entry["ENGINE"]).DatabaseWrapper(entry, alias)
    try:
        yield
    finally:
        connections[alias].close()
        if old_entry is None or old_connection is None:
            del connections.settings[alias]
            del connections[alias]
        else:
            connections.settings[alias] = old_entry
            connections[alias] = old_connection


@pytest.fixture(scope="session")
def three_databases(database_source: DatabaseSource) -> Iterator[dict[str, FreshDatabase]]:
    """Made once; each test empties them."""
    made = {alias: database_source.fresh() for alias in (SPINE, NORTH, SOUTH)}
    yield made
    for one in made.values():
        one.drop()


def empty(alias: str) -> None:
    """Delete every row of ours."""
    from django_durable.models import PLANE_MODELS, SPINE_MODELS

    with connections[alias].cursor() as cursor:
        for model in (*PLANE_MODELS, *SPINE_MODELS):
            cursor.execute(f"DELETE FROM {model._meta.db_table}")


@pytest.fixture
def planes(three_databases: dict[str, FreshDatabase], django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The run's own database is the spine; tenants ann and bob live on north, cid on south."""
    from django_durable.planes import place_tenant
    from django_durable.planes.behind import forget_looks
    from django_durable.planes.breaker import _open
    from django_durable.planes.presence import forget_known, make_known
    from django_durable.runtime.stretch import _cursors

    _open.clear()
    _cursors.clear()
    forget_looks()
    forget_known()
    with ExitStack() as stack:
        stack.enter_context(django_db_blocker.unblock())
        for alias, made in three_databases.items():
            stack.enter_context(database(alias, made.url))
            empty(alias)
        durable = {"SPINE": SPINE, "PLANES": {"north": NORTH, "south": SOUTH}}
        routers = ["django_durable.routers.PlaneRouter"]
        stack.enter_context(override_settings(DURABLE=durable, DATABASE_ROUTERS=routers))
        for tenant, plane in {"ann": "north", "bob": "north", "cid": "south"}.items():
            place_tenant(tenant, plane)
            make_known(plane, tenant)  # as after each one's first start
        yield
