"""The fixtures of this tier. Nothing of Django is imported before the backend has been chosen."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
from django.test import override_settings

from testproject.services.valkey import OwnValkey
from tests.planes.conftest import database
from tests.services.databases import FreshDatabase
from tests.services.project import Project

if TYPE_CHECKING:
    from tests.celery.fleet import Fleet


@pytest.fixture
def fleet(project: Project, valkey: OwnValkey, tmp_path: Path) -> Fleet:
    """The test project on a fresh database, with a broker and this tier's workflows; see ``Fleet``."""
    os.environ.setdefault("EFFECTS", str(tmp_path))
    import_module("tests.celery.workflows")
    project.own_env.update(
        BROKER_URL=valkey.url, DJANGO_SETTINGS_MODULE="tests.celery.settings", EFFECTS=str(tmp_path)
    )
    made: Fleet = import_module("tests.celery.fleet").Fleet(project, valkey, tmp_path)
    return made


@pytest.fixture
def plane(fleet: Fleet, fresh_database: Callable[[], FreshDatabase]) -> Iterator[str]:
    """A data plane in a database of its own, on which the tenant ``acme`` lives; the project's database is the spine."""
    from django_durable.planes import place_tenant
    from django_durable.planes.breaker import _open

    _open.clear()
    made = fresh_database()
    fleet.project.add_plane("north", made)
    fleet.durable["PLANES"] = {"north": "north"}
    routers = ["django_durable.routers.PlaneRouter"]
    with database("north", made.url), override_settings(DURABLE=fleet.durable, DATABASE_ROUTERS=routers):
        place_tenant("acme", "north")
        yield "north"


@pytest.fixture
def traffic(valkey: OwnValkey) -> Iterator[list[str]]:
    """Every command that the broker gets from now on."""
    seen: list[str] = []
    with redis.from_url(valkey.url) as client, client.monitor() as monitor:

        def listen() -> None:
            for command in monitor.listen():
                seen.append(command["command"])
                if command["command"] == "ECHO the-end":
                    return

        listener = threading.Thread(target=listen)
        listener.start()
        yield seen
        client.echo("the-end")
        listener.join(10)
