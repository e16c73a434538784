"""Stage: an empty database and a folder of the demo's own, and the environment that leads every process there."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testproject.services.postgres import PostgresServer

__all__ = ["ROOT", "Stage", "StageError", "staged"]

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "testproject.demo.settings"
# What the caller's environment must not decide: another database, another file.
NOT_INHERITED = ("DATABASE_URL", "SQLITE_PATH", "PLANE_DATABASES", "DEBUG")


class StageError(RuntimeError):
    """The demo cannot begin; the text says what to install or to set."""


@dataclass(kw_only=True)
class Stage:
    """Where one demo runs. ``keep`` leaves the folder with the processes' logs behind."""

    folder: Path
    database: str
    keep: bool = False


@contextmanager
def staged(*, celery: bool, body_seconds: float) -> Iterator[Stage]:
    """Set the environment of this process and of those that it starts; at the end the database is dropped.

    Raises ``StageError`` where a database or broker that was asked for is not there.
    """
    folder = Path(tempfile.mkdtemp(prefix="django-durable-demo-"))
    url = os.environ.get("DATABASE_URL", "")
    server, name = _server(url, celery=celery), f"demo_{secrets.token_hex(4)}"
    variables = {
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "PROVIDER_LEDGER": str(folder / "ledger.sqlite3"),
        "MAILBOX": str(folder / "mailbox.sqlite3"),
        "BODY_LOG": str(folder / "bodies.sqlite3"),
        "BODY_SECONDS": str(body_seconds),
        "PYTHONUNBUFFERED": "1",
    }
    if server is None:
        variables["SQLITE_PATH"] = str(folder / "shop.sqlite3")
        database = "an SQLite file"
    else:
        variables["DATABASE_URL"] = server.create_database(name)
        database = "PostgreSQL"
    stage = Stage(folder=folder, database=database)
    _set_environment(variables, celery=celery)
    try:
        yield stage
    finally:
        if server is not None:
            _close_connections()
            server.drop_database(name)
        if not stage.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _server(url: str, *, celery: bool) -> PostgresServer | None:
    if celery and not os.environ.get("BROKER_URL"):
        raise StageError("--celery needs a broker: set BROKER_URL, or run `make demo-celery`, which brings one.")
    if not url and celery:
        raise StageError(
            "--celery needs PostgreSQL: set DATABASE_URL, or run `make demo-celery`, which brings a server."
        )
    if not url:
        return None
    if not url.startswith(("postgres://", "postgresql://")):
        raise StageError(
            f"DATABASE_URL begins with {url.partition(':')[0]!r}. Name a PostgreSQL server, on which the demo makes a"
            " database of its own, or unset it: then the demo makes an SQLite file."
        )
    from testproject.services.postgres import PostgresServer

    return PostgresServer(url)


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
