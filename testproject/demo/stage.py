"""Stage: empty databases and a folder of the demo's own, and the environment that leads every process there."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from testproject.demo.planes import NORTH, SOUTH, WEST, FolderPlanes, Planes, ServerPlanes

__all__ = ["ROOT", "Stage", "StageError", "staged"]

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "testproject.demo.settings"
PLANES_SETTINGS = "testproject.demo.planes_settings"
# What the caller's environment must not decide: another database, another file.
NOT_INHERITED = ("DATABASE_URL", "SQLITE_PATH", "PLANE_DATABASES", "SPINE_DATABASE", "DEBUG")


class StageError(RuntimeError):
    """The demo cannot begin; the text says what to install or to set."""


@dataclass(kw_only=True)
class Stage:
    """Where one demo runs. ``keep`` leaves the folder with the processes' logs behind."""

    folder: Path
    database: str
    keep: bool = False
    planes: Planes | None = None


@contextmanager
def staged(*, celery: bool, body_seconds: float, planes: bool = False) -> Iterator[Stage]:
    """Set the environment of this process and of those that it starts; at the end the database is dropped.

    Raises ``StageError`` where a database or broker that was asked for is not there.
    """
    url = os.environ.get("DATABASE_URL", "")
    _check(url, celery=celery)
    with ExitStack() as stack:
        made = stack.enter_context(_database(url)) if url else ""
        folder = Path(tempfile.mkdtemp(prefix="django-durable-demo-"))
        stage = Stage(folder=folder, database="PostgreSQL" if made else "an SQLite file")
        stack.callback(_clear, stage)
        database = {"DATABASE_URL": made} if made else {"SQLITE_PATH": str(folder / "shop.sqlite3")}
        if planes:
            stage.planes = stack.enter_context(_planes(url, folder))
            stage.database = stage.planes.what
            database["PLANE_DATABASES"] = json.dumps(stage.planes.urls)
        variables = {
            "DJANGO_SETTINGS_MODULE": PLANES_SETTINGS if planes else SETTINGS,
            "PROVIDER_LEDGER": str(folder / "ledger.sqlite3"),
            "MAILBOX": str(folder / "mailbox.sqlite3"),
            "BODY_LOG": str(folder / "bodies.sqlite3"),
            "BODY_SECONDS": str(body_seconds),
            "PYTHONUNBUFFERED": "1",
        }
        _set_environment({**database, **variables}, celery=celery)
        yield stage


def _check(url: str, *, celery: bool) -> None:
    if celery and not (url and os.environ.get("BROKER_URL")):
        raise StageError(
            "--celery needs PostgreSQL and a broker: set DATABASE_URL and BROKER_URL, or run `make demo-celery`,"
            " which brings both."
        )
    if url and not url.startswith(("postgres://", "postgresql://")):
        raise StageError(
            f"DATABASE_URL begins with {url.partition(':')[0]!r}. Name a PostgreSQL server, on which the demo makes a"
            " database of its own, or unset it: then the demo makes an SQLite file."
        )


@contextmanager
def _database(url: str) -> Iterator[str]:
    """A new database on that server, gone at the end; its URL."""
    try:
        import psycopg

        from testproject.services.postgres import PostgresServer
    except ImportError as error:
        raise StageError("PostgreSQL needs psycopg, which is not here: `pip install 'psycopg[binary]'`.") from error
    server, name = PostgresServer(url), f"demo_{os.getpid()}_{secrets.token_hex(4)}"
    try:
        made = server.create_database(name)
    except psycopg.Error as error:
        raise StageError(f"No database could be made on the server that DATABASE_URL names: {error}") from error
    try:
        yield made
    finally:
        _close_connections()
        server.drop_database(name)


@contextmanager
def _planes(url: str, folder: Path) -> Iterator[Planes]:
    """A database each for the planes, the one that is to be stopped on a server or in a folder of its own."""
    if not url:
        yield FolderPlanes(folder)
        return
    from testproject.services.postgres import OwnPostgres
    from testproject.services.throwaway import ServiceError

    with ExitStack() as stack:
        urls = {name: stack.enter_context(_database(url)) for name in (NORTH, WEST)}
        try:
            server = OwnPostgres(durable=False)
        except ServiceError as error:
            raise StageError(f"The plane that is to be stopped needs a server of its own: {error}") from error
        stack.callback(server.remove)
        stack.callback(_close_connections)
        yield ServerPlanes({**urls, SOUTH: server.url}, server)


def _clear(stage: Stage) -> None:
    _close_connections()
    if not stage.keep:
        shutil.rmtree(stage.folder, ignore_errors=True)


def _set_environment(variables: Mapping[str, str], *, celery: bool) -> None:
    for name in NOT_INHERITED if celery else (*NOT_INHERITED, "BROKER_URL"):
        os.environ.pop(name, None)
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    os.environ.update(variables)


def _close_connections() -> None:
    if "django" in sys.modules:
        from django.db import connections

        connections.close_all()
