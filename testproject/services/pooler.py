"""A transaction-pooling proxy: ``python -m testproject.services.pooler [--size=N] -- command …``.

Stands between PostgreSQL's clients and the server that ``DATABASE_URL`` names, as PgBouncer does with ``pool_mode =
transaction``: a client has one of ``N`` server connections from the first message of a transaction to its end; the
next transaction gets the one that was idle longest, so that two in a row rarely share a session. Nothing resets a
session in between: what a client leaves there, another one meets. No encryption, no passwords, no cancel requests, no
COPY, no pipelines; Unix sockets or TCP to the server.

The messages are those of PostgreSQL's documentation, "Frontend/Backend Protocol", version 3.0.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from testproject.services.command import run_beside, split_command
from testproject.services.throwaway import ServiceError

__all__ = ["Pooler"]

ENCRYPTION = {80877103, 80877104}
CANCEL = 80877102
PORT = 5432
ASKS = {b"Q", b"S", b"F"}
"""Query, Sync, FunctionCall: the server answers each with messages that end in one ReadyForQuery."""
GONE = (asyncio.IncompleteReadError, ConnectionError)


class Pooler:
    """Runs in a thread of its own until ``stop()``; ``url_of(database)`` is where clients connect."""

    def __init__(self, url: str, *, size: int = 2) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        self.size = size
        self._user, self._database = unquote(parts.username or "postgres"), unquote(parts.path.lstrip("/"))
        host = options.get("host") or parts.hostname or "localhost"
        self._server_at = (host, int(options.get("port") or parts.port or PORT))
        self._folder = tempfile.TemporaryDirectory(prefix="pooler-")
        os.chmod(self._folder.name, 0o755)
        self._pools: dict[bytes, Pool] = {}
        self._listening = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._listen(),), name="pooler", daemon=True)
        self._thread.start()
        if not self._listening.wait(10):
            raise ServiceError("The pooler did not start within 10 s.")

    @property
    def url(self) -> str:
        """The database that the server's URL names."""
        return self.url_of(self._database)

    def url_of(self, database: str) -> str:
        """Any database of the server."""
        return f"postgresql://{quote(self._user)}@/{quote(database)}?host={quote(self._folder.name, safe='')}"

    @property
    def transactions(self) -> int:
        """How many have come through."""
        return sum(pool.transactions for pool in list(self._pools.values()))

    def stop(self) -> None:
        """Cut everybody off."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._folder.cleanup()

    async def _listen(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        listener = await asyncio.start_unix_server(self._serve, Path(self._folder.name, f".s.PGSQL.{PORT}"))
        self._listening.set()
        await self._stop.wait()
        listener.close()
        serving = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            start = await read_start(reader, writer)
            if start is not None:
                pool = self._pools.setdefault(start, Pool(start, self.size, self._server_at))
                await pool.serve(reader, writer)
        except GONE:
            pass
        finally:
            writer.close()


class Link:
    """One connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.greeting = b""

    async def carry(self, message: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one transaction that begins with this message of the client."""
        while True:
            self.writer.write(message)
            if message[:1] in ASKS:
                answer = await self._answer(writer)
                if answer == b"I":
                    return
            message = await read_message(reader)
            if message[:1] == b"X":
                raise ConnectionResetError

    async def _answer(self, writer: asyncio.StreamWriter) -> bytes:
        """Everything up to ReadyForQuery; the state of the transaction that it tells."""
        while True:
            message = await read_message(self.reader)
            writer.write(message)
            if message[:1] == b"Z":
                return message[5:6]


class Pool:
    """The server connections for one start-up message: a user, a database, its parameters."""

    def __init__(self, start: bytes, size: int, server_at: tuple[str, int]) -> None:
        self.transactions = 0
        self._start, self._server_at = start, server_at
        self._free: deque[Link | None] = deque([None] * size)
        self._room = asyncio.Semaphore(size)
        self._clients = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until it leaves."""
        self._clients += 1
        try:
            link = await self._take()
            writer.write(link.greeting)
            self._give(link)
            while (message := await read_message(reader))[:1] != b"X":
                await self._transaction(message, reader, writer)
        finally:
            self._clients -= 1
            if not self._clients:
                self._close_idle()  # the database may be about to be dropped

    async def _transaction(self, message: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = await self._take()
        try:
            await link.carry(message, reader, writer)
        except BaseException:
            link.writer.close()  # which rolls back
            self._give(None)
            raise
        self.transactions += 1
        self._give(link)

    async def _take(self) -> Link:
        await self._room.acquire()
        link = self._free.popleft()
        try:
            return link if link is not None and not link.reader.at_eof() else await self._dial()
        except BaseException:
            self._give(None)
            raise

    def _give(self, link: Link | None) -> None:
        self._free.append(link)
        self._room.release()

    def _close_idle(self) -> None:
        for link in self._free:
            if link is not None:
                link.writer.close()
        self._free = deque([None] * len(self._free))

    async def _dial(self) -> Link:
        host, port = self._server_at
        if host.startswith("/"):
            link = Link(*await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}"))
        else:
            link = Link(*await asyncio.open_connection(host, port))
        link.writer.write(struct.pack("!I", len(self._start) + 4) + self._start)
        message = b""
        while message[:1] not in (b"Z", b"E"):
            message = await read_message(link.reader)
            link.greeting += message
        return link


async def read_start(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
    """The client's start-up message without its length; ``None`` for a cancel request. Encryption is declined."""
    while True:
        (length,) = struct.unpack("!I", await reader.readexactly(4))
        body = await reader.readexactly(length - 4)
        (code,) = struct.unpack("!I", body[:4])
        if code not in ENCRYPTION:
            return None if code == CANCEL else body
        writer.write(b"N")


async def read_message(reader: asyncio.StreamReader) -> bytes:
    """One message with its type and length."""
    head = await reader.readexactly(5)
    (length,) = struct.unpack("!I", head[1:])
    return head + await reader.readexactly(length - 4)


def main(argv: Sequence[str]) -> int:
    """Run a command whose ``DATABASE_URL`` leads through the pooler."""
    options, command = split_command(argv)
    sizes = [option.removeprefix("--size=") for option in options]
    if len(sizes) > 1 or not all(map(str.isdecimal, sizes)):
        sys.exit("the only option is --size=N")
    pooler = Pooler(os.environ["DATABASE_URL"], size=int((sizes or ["2"])[0]))
    try:
        return run_beside({"DATABASE_URL": pooler.url}, command)
    finally:
        pooler.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
