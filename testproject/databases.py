"""Django's database settings out of a URL: ``postgresql://user@host/name`` or ``sqlite:////folder/file``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["from_environment", "from_url", "sqlite_file"]

# A reader never waits for a writer (WAL), a writer starts with the write lock (IMMEDIATE): without the
# second, two transactions that read first and write later fail with "database is locked" at once, whatever
# the timeout.
SQLITE_OPTIONS = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
}


def from_environment(default_file: Path) -> dict[str, dict[str, Any]]:
    """``DATABASES``: ``DATABASE_URL``, or the SQLite file ``SQLITE_PATH``, or this file.

    ``PLANE_DATABASES`` may name more: a JSON object of alias and URL, each a data plane; ``SPINE_DATABASE`` the URL
    of a spine apart from ``default``.
    """
    url = os.environ.get("DATABASE_URL")
    default = from_url(url) if url else sqlite_file(Path(os.environ.get("SQLITE_PATH") or default_file))
    others = json.loads(os.environ.get("PLANE_DATABASES") or "{}")
    if spine := os.environ.get("SPINE_DATABASE"):
        others["spine"] = spine
    return {"default": default, **{alias: from_url(other) for alias, other in others.items()}}


def from_url(url: str) -> dict[str, Any]:
    """One entry of ``DATABASES``. What follows the question mark goes to libpq; ``host`` may be a folder."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return sqlite_file(Path(unquote(parts.path)))
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ValueError(
            f"The database URL begins with {parts.scheme!r}; use postgresql://user@host/name or sqlite:////folder/file."
        )
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", "") or parts.hostname or "",
        "PORT": options.pop("port", "") or str(parts.port or ""),
        "OPTIONS": options,
    }


def sqlite_file(path: Path) -> dict[str, Any]:
    """An SQLite file; the tests' database is a file too, since threads and processes have to share it."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": dict(SQLITE_OPTIONS),
        "TEST": {"NAME": str(path.with_name(f"test-{path.name}"))},
    }
