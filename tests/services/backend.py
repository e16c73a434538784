"""Which backend this run tests: ``TEST_DB=sqlite`` (the default) or ``TEST_DB=postgres``.

And in which layout: ``TEST_LAYOUT=apart`` has the package's tables on a database ``spine``, and none on ``default``.

The settings are read once and early, so the choice is made in the environment before Django looks at it. With
pytest-xdist the controller makes it, and its workers inherit the variables.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import django
import pytest
from django.conf import settings

from testproject.services.postgres import OwnPostgres, PostgresServer

__all__ = ["choose_backend", "database_alias", "database_variables", "forget_backend", "shared_postgres"]

# Where xdist's workers find the server that the controller has started.
SERVER_VARIABLE = "TEST_POSTGRES_URL"

_folder: Path | None = None
_server: PostgresServer | None = None


def choose_backend() -> None:
    """Set what ``testproject.settings`` reads. ``DATABASE_URL`` is the server where PostgreSQL is tested."""
    global _folder, _server
    backend = os.environ.setdefault("TEST_DB", "sqlite")
    if backend not in {"sqlite", "postgres"}:
        raise pytest.UsageError(f"TEST_DB is {backend!r}; use sqlite or postgres.")
    layout = os.environ.setdefault("TEST_LAYOUT", "joined")
    if layout not in {"joined", "apart"}:
        raise pytest.UsageError(f"TEST_LAYOUT is {layout!r}; use joined or apart.")
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if settings.configured and backend == "postgres":
        raise pytest.UsageError("Django is configured before the backend is chosen; unset DJANGO_SETTINGS_MODULE.")
    if url := os.environ.pop("DATABASE_URL", None):
        os.environ[SERVER_VARIABLE] = url
    _folder = Path(tempfile.mkdtemp(prefix="durable-tests-"))
    os.environ["SQLITE_PATH"] = str(_folder / "app.sqlite3")
    if layout == "apart":
        file = f"sqlite://{_folder / 'spine.sqlite3'}"
        os.environ["SPINE_DATABASE"] = file if backend == "sqlite" else shared_postgres().url_of("spine")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
    if backend == "postgres":
        os.environ[SERVER_VARIABLE] = os.environ["DATABASE_URL"] = shared_postgres().url
    django.setup()


def database_alias() -> str:
    """The database with the package's tables: ``default``, or ``spine`` where that is apart."""
    return "spine" if os.environ.get("TEST_LAYOUT") == "apart" else "default"


def database_variables(url: str, other: Path) -> dict[str, str]:
    """The environment of a process whose tables of the package are in this database, ``default`` in it or the other."""
    if database_alias() == "default":
        return {"DATABASE_URL": url}
    return {"DATABASE_URL": f"sqlite://{other}", "SPINE_DATABASE": url}


def shared_postgres() -> PostgresServer:
    """The run's server: the one named in the environment, else one of our own, started when first used."""
    global _server
    if _server is None:
        url = os.environ.get(SERVER_VARIABLE)
        _server = PostgresServer(url) if url else OwnPostgres(durable=False)
    return _server


def forget_backend() -> None:
    """Stop the server if it is our own, and delete the files."""
    global _folder, _server
    if isinstance(_server, OwnPostgres):
        _server.remove()
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)
    _folder = _server = None
