"""Wait: take a message that is there, close a wait whose time is over, or suspend; under one exclusive lock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections, transaction

from django_durable.engine.claimed import Claimed
from django_durable.engine.journal import CHECKPOINT, EXECUTION, fence
from django_durable.engine.messages import Letter, consume, first_unread
from django_durable.engine.transitions.leave import Pages, suspend
from django_durable.models import Checkpoint
from django_durable.sql import Sql, build, columns, convert, execute, fetch, field_of, is_postgres, value


@dataclass(frozen=True, slots=True)
class Waited:
    """How a wait came out: refused by the fence, a message taken, its time over, or suspended."""

    refused: bool = False
    letter: Letter | None = None
    timed_out: bool = False

    @property
    def suspended(self) -> bool:
        """Whether the execution now waits without a worker."""
        return not self.refused and self.letter is None and not self.timed_out


def wait_for_messages(
    claim: Claimed,
    pages: Callable[[Mapping[str, Any]], Pages],
    *,
    position: int,
    channels: Sequence[str],
    until: datetime | None,
    timed_out_error: str,
) -> Waited:
    """One transaction: ``pages`` makes the checkpoint to write from its changes.

    A message that was accepted before ``until`` wins, also when it is noticed later; one that came after stays
    for the next wait.
    """
    using = claim.using
    with read_committed(using):
        if not lock_fenced(claim):
            return Waited(refused=True)
        letter = first_unread(using, claim.id, channels, before=until)
        if letter is not None:
            changes = {"status": "completed", "encoded_output": letter.payload, "finished_at": claim.now()}
            write_pages(claim, pages(changes))
            consume(using, letter.id, position)
            return Waited(letter=letter)
        if until is not None and claim.now() >= until:
            write_pages(
                claim,
                pages({"status": "failed", "encoded_error": timed_out_error, "finished_at": claim.now()}),
            )
            return Waited(timed_out=True)
        waiting = pages({"status": "pending", "wake_at": until})
        if not suspend(claim, waiting, wake_at=until, awaiting=json.dumps(list(channels))):
            return Waited(refused=True)
        return Waited()


def read_outcome(claim: Claimed, position: int) -> Waited | None:
    """How a wait came out that had been committed although an error came back; ``None``: it was not."""
    connection = connections[claim.using]
    names = ("status", "encoded_output", "lease_token")
    rows = fetch(
        claim.using,
        build(
            f"SELECT {columns(Checkpoint, names)} FROM {CHECKPOINT} WHERE execution_id = {{id}}"
            " AND position = {position} AND item = -1",
            id=value(connection, field_of(Checkpoint, "execution_id"), claim.id),
            position=value(connection, field_of(Checkpoint, "position"), position),
        ),
    )
    row = convert(connection, Checkpoint, names, rows[0]) if rows else {"lease_token": None}
    if row["lease_token"] != claim.token or row["status"] == "pending":
        return None
    if row["status"] == "failed":
        return Waited(timed_out=True)
    return Waited(letter=Letter(0, "", row["encoded_output"] or "null", claim.read_at))


@contextmanager
def read_committed(using: str) -> Iterator[None]:
    """A transaction that sees what was committed while it waited for the lock, whatever the session's isolation.

    In REPEATABLE READ the snapshot is as old as the wait for the lock: a message whose sender held the row would
    not be seen, and the sender, which found the execution running, would not have woken it.
    """
    connection = connections[using]
    outermost = not connection.in_atomic_block
    with transaction.atomic(using=using):
        if outermost and is_postgres(connection) and _isolation_of(using) != "read committed":
            execute(using, Sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"))
        yield


def _isolation_of(using: str) -> str:
    """The isolation of this connection's transactions as the server has it: asked once a connection.

    ``SHOW`` takes no snapshot, so the level of the transaction can still be changed after it.
    """
    connection = connections[using]
    known: tuple[object, str] | None = getattr(connection, "_durable_isolation", None)
    if known is None or known[0] is not connection.connection:
        level = str(fetch(using, Sql("SHOW transaction_isolation"))[0][0])
        known = (connection.connection, level)
        connection._durable_isolation = known  # type: ignore[attr-defined]
    return known[1]


def lock_fenced(claim: Claimed) -> bool:
    """Lock the execution's row exclusively, if this claim still holds it."""
    if is_postgres(connections[claim.using]):
        statement = build(f"SELECT 1 FROM {EXECUTION} e WHERE {{fence}} FOR UPDATE", fence=fence(claim))
        return bool(fetch(claim.using, statement))
    statement = build(f"UPDATE {EXECUTION} AS e SET lease_token = e.lease_token WHERE {{fence}}", fence=fence(claim))
    return bool(execute(claim.using, statement))


def write_pages(claim: Claimed, pages: Pages) -> None:
    """Write checkpoints within a transaction that holds the fence."""
    for consequence in pages.consequences(claim):
        execute(claim.using, consequence)
