"""Wait: take a message that is there, close a wait whose time is over, or suspend; under one exclusive lock.

What is waited for is in the execution's mailbox (``channels``), or with a ``Source`` elsewhere, which has its own
channel to wake by and its own way to be looked for and taken. Whatever came first in time is taken, and that alone,
in the transaction of the wait's checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from django.db import connections

from django_durable.engine.claimed import Claimed
from django_durable.engine.isolation import read_committed
from django_durable.engine.journal import CHECKPOINT, EXECUTION, fence
from django_durable.engine.messages import Letter, consume, first_unread
from django_durable.engine.transitions.leave import Pages, suspend
from django_durable.models import Checkpoint
from django_durable.sql import Sql, build, columns, convert, execute, fetch, field_of, is_postgres, value


class Source(Protocol):
    """Something outside the mailbox that a wait can take: an event, a future.

    What makes it arrive must wake the execution by ``channel`` after it has been committed, and only where
    ``register`` can be seen by then: the wait registers, commits, and looks after that.
    """

    @property
    def channel(self) -> Any:
        """What its arrival wakes by, as it stands in the execution's ``awaiting``: JSON, a text for most."""

    def register(self, claim: Claimed, position: int) -> None:
        """Make known, in a transaction of its own, that this wait is about to look. May be repeated."""

    def oldest(self, claim: Claimed, before: datetime | None) -> Letter | None:
        """The first one that arrived in time and is not taken; the execution's row is locked."""

    def consume(self, claim: Claimed, position: int, letter: Letter) -> None:
        """Take it, in the transaction of the checkpoint."""

    def close(self, claim: Claimed, position: int) -> Sql:
        """Take back what ``register`` made known: the wait is over, whichever way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a wait's checkpoint says of the message that it took: an output, or an error."""

    output: str | None = None
    error: str | None = None


def as_it_came(letter: Letter) -> Recorded:
    """The payload is the output."""
    return Recorded(output=letter.payload)


def nothing() -> Sequence[Sql]:
    """No further statement."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is particular to a wait: further sources, how it records a message, what is written with it.

    ``asks`` are statements for the transaction in which it first suspends, ``lapses`` for the one that closes it
    because its time is over.
    """

    sources: Sequence[Source] = ()
    record: Callable[[Letter], Recorded] = as_it_came
    asks: Callable[[], Sequence[Sql]] = nothing
    lapses: Callable[[], Sequence[Sql]] = nothing


PLAIN = Terms()


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
    terms: Terms = PLAIN,
) -> Waited:
    """One transaction: ``pages`` makes the checkpoint to write from its changes.

    A message that was accepted before ``until`` wins, also when it is noticed later; one that came after stays
    for the next wait.
    """
    using = claim.using
    with read_committed(using):
        if not lock_fenced(claim):
            return Waited(refused=True)
        letter, source = _oldest(claim, channels, terms.sources, until)
        if letter is not None:
            return _take(claim, pages, position, letter, source, terms)
        if until is not None and claim.now() >= until:
            late = {"status": "failed", "encoded_error": timed_out_error, "finished_at": claim.now()}
            write_pages(claim, pages(late))
            _execute(using, [*terms.lapses(), *_closing(claim, position, terms)])
            return Waited(timed_out=True)
        waiting = pages({"status": "pending", "wake_at": until})
        if not suspend(claim, waiting, wake_at=until, awaiting=json.dumps(_awaiting(channels, terms.sources))):
            return Waited(refused=True)
        _execute(using, terms.asks())
        return Waited()


def _awaiting(channels: Sequence[str], sources: Sequence[Source]) -> list[Any]:
    """Everything that wakes this wait, each once."""
    awaiting: list[Any] = list(channels)
    for source in sources:
        if source.channel not in awaiting:
            awaiting.append(source.channel)
    return awaiting


def _oldest(
    claim: Claimed, channels: Sequence[str], sources: Sequence[Source], until: datetime | None
) -> tuple[Letter | None, Source | None]:
    """What was there first, and where it is from; the mailbox is no source."""
    found: list[tuple[Letter, Source | None]] = []
    letter = first_unread(claim.using, claim.id, channels, before=until)
    if letter is not None:
        found.append((letter, None))
    for source in sources:
        letter = source.oldest(claim, until)
        if letter is not None:
            found.append((letter, source))
    return min(found, key=lambda one: one[0].accepted_at) if found else (None, None)


def _take(
    claim: Claimed,
    pages: Callable[[Mapping[str, Any]], Pages],
    position: int,
    letter: Letter,
    source: Source | None,
    terms: Terms,
) -> Waited:
    told = terms.record(letter)
    changes = {
        "status": "completed" if told.error is None else "failed",
        "encoded_output": told.output,
        "encoded_error": told.error,
        "finished_at": claim.now(),
    }
    write_pages(claim, pages(changes))
    if source is None:
        consume(claim.using, letter.id, position)
    else:
        source.consume(claim, position, letter)
    _execute(claim.using, _closing(claim, position, terms))
    return Waited(letter=replace(letter, payload=told.output or "null", error=told.error))


def _closing(claim: Claimed, position: int, terms: Terms) -> list[Sql]:
    return list(dict.fromkeys(source.close(claim, position) for source in terms.sources))


def _execute(using: str, statements: Sequence[Sql]) -> None:
    for statement in statements:
        execute(using, statement)


def read_outcome(claim: Claimed, position: int) -> Waited | None:
    """How a wait came out that had been committed although an error came back; ``None``: it was not."""
    connection = connections[claim.using]
    names = ("status", "encoded_output", "encoded_error", "lease_token")
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
    # An error may be the message's or the end of the time: the stored one tells, as it does at a replay.
    return Waited(letter=Letter(0, "", row["encoded_output"] or "null", claim.read_at, row["encoded_error"]))


def lock_fenced(claim: Claimed) -> bool:
    """Lock the execution's row exclusively, if this claim still holds it; whether it does."""
    if is_postgres(connections[claim.using]):
        statement = build(f"SELECT 1 FROM {EXECUTION} e WHERE {{fence}} FOR UPDATE", fence=fence(claim))
        return bool(fetch(claim.using, statement))
    statement = build(f"UPDATE {EXECUTION} AS e SET lease_token = e.lease_token WHERE {{fence}}", fence=fence(claim))
    return bool(execute(claim.using, statement))


def write_pages(claim: Claimed, pages: Pages) -> None:
    """Write checkpoints within a transaction that holds the fence."""
    _execute(claim.using, pages.consequences(claim))
