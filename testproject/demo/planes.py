"""Planes: the databases of the demo's tenants, one of which can be taken away and brought back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from testproject.services.postgres import OwnPostgres

__all__ = ["NORTH", "SOUTH", "WEST", "FolderPlanes", "Planes", "ServerPlanes"]

NORTH, SOUTH, WEST = "north", "south", "west"
"""Planes by name and alias: north and south are there from the beginning, south is stopped, west comes later."""


class Planes:
    """``urls`` by alias; ``stop`` and ``start`` are for south."""

    what: str
    """The databases, for people."""
    stopping: str
    """What ``stop`` does, for people."""
    holds_files: bool
    """Whether a process that has the database open would not notice: it has to be killed first."""

    def __init__(self, urls: dict[str, str]) -> None:
        self.urls = urls

    def stop(self) -> None:
        """Make south unreachable, whoever is connected."""
        raise NotImplementedError

    def start(self) -> None:
        """Bring it back with everything that was committed."""
        raise NotImplementedError


class ServerPlanes(Planes):
    """PostgreSQL: south is a server of its own, stopped as in a crash."""

    what = "PostgreSQL, a database for the spine and one for each plane"
    stopping = "its server is stopped as in a crash"
    holds_files = False

    def __init__(self, urls: dict[str, str], server: OwnPostgres) -> None:
        super().__init__(urls)
        self._server = server

    def stop(self) -> None:
        self._server.stop(immediate=True)

    def start(self) -> None:
        self._server.start()


class FolderPlanes(Planes):
    """SQLite: each file is in a folder of its own, and south's is moved away, as by an unmount."""

    what = "SQLite, a file for the spine and one for each plane"
    stopping = "its folder is taken away, and the processes that have its file open are killed"
    holds_files = True

    def __init__(self, folder: Path) -> None:
        super().__init__(
            {name: f"sqlite://{quote(str(folder / name / 'plane.sqlite3'))}" for name in (NORTH, SOUTH, WEST)}
        )
        for name in self.urls:
            (folder / name).mkdir()
        self._here, self._away = folder / SOUTH, folder / f"{SOUTH}-away"

    def stop(self) -> None:
        self._here.rename(self._away)

    def start(self) -> None:
        self._away.rename(self._here)
