"""The mailbox: one way in for whatever is sent to an execution, one way in which a wait takes it.

The message's row is the mark. A sender locks the execution's row ``FOR SHARE``, so that it never stops a running
turn's appends, and inserts; only where it finds the execution waiting for this does it go back to a savepoint
and lock exclusively to wake it. A wait locks exclusively and looks for messages then. So either the sender sees
the wait, or the wait sees the message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from django_durable.clock import sql_now
from django_durable.dispatch.hints import Intent
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.chain import lock_current, runs_of
from django_durable.engine.claimed import as_utc
from django_durable.engine.contention import repeated
from django_durable.engine.journal import EXECUTION
from django_durable.engine.locking import lock_execution
from django_durable.engine.transitions import SOURCES, listed
from django_durable.errors import ExecutionClosed
from django_durable.models import Execution, Message
from django_durable.sql import (
    Sql,
    build,
    columns,
    convert,
    execute,
    fetch,
    field_of,
    insert_row,
    is_postgres,
    join,
    run_guarded,
    value,
)

TABLE = Message._meta.db_table
CALLBACK = "callback:"
_UNREAD = f"(consumed_by IS NULL OR channel LIKE '{CALLBACK}%%')"
CLOSED = ("completed", "continued", "failed", "cancelled", "timed_out", "dead", "compensating")


@dataclass(frozen=True, slots=True)
class Letter:
    """A message as a wait takes it. ``error`` is what the wait recorded instead of an output, where it failed."""

    id: int
    channel: str
    payload: str
    accepted_at: datetime
    error: str | None = None
    # Which of several sources outside the mailbox it came from.
    number: int = -1


@dataclass(frozen=True, slots=True)
class Posted:
    """A message that is stored; ``is_new`` is false where one with its deduplication key had been before."""

    id: int
    is_new: bool


class _MustWake(Exception):
    """Found waiting under the shared lock: go back and lock exclusively."""


def send(using: str, execution_id: UUID, channel: str, payload: str, dedup_key: str | None = None) -> int:
    """Store a message and wake the execution if it waits for it; the message's id.

    A repeated ``dedup_key`` returns the first message's id, also after the end. Raises ``ExecutionClosed`` when
    the execution has ended, decided under the lock that its end takes too.
    """
    return post(using, execution_id, channel, payload, dedup_key).id


def post(using: str, execution_id: UUID, channel: str, payload: str, dedup_key: str | None = None) -> Posted:
    """``send``, and whether the message is a new one."""
    return repeated(using, lambda: _post(using, execution_id, channel, payload, dedup_key))


def _post(using: str, execution_id: UUID, channel: str, payload: str, dedup_key: str | None) -> Posted:
    try:
        with transaction.atomic(using=using):
            return _deliver(using, execution_id, channel, payload, dedup_key, exclusive=False)
    except _MustWake:
        with transaction.atomic(using=using):
            return _deliver(using, execution_id, channel, payload, dedup_key, exclusive=True)


def _deliver(
    using: str, execution_id: UUID, channel: str, payload: str, dedup_key: str | None, *, exclusive: bool
) -> Posted:
    # A callback is of its run alone; anything else is for the chain's current one.
    lock = lock_execution if channel.startswith(CALLBACK) else lock_current
    _now, row = lock(using, execution_id, shared=not exclusive)
    if dedup_key is not None:
        known = _find(using, row, channel, dedup_key)
        if known is not None:
            return Posted(known, is_new=False)
    if row["status"] in CLOSED or row["ending_as"]:
        how = f"ending as {row['ending_as']}" if row["status"] == "running" else row["status"]
        raise ExecutionClosed(f"execution {row['id']} is {how}; it takes no more messages")
    wakes = waits_for(row, channel)
    if wakes and not exclusive and is_postgres(connections[using]):
        raise _MustWake
    posted = _insert(using, row, channel, payload, dedup_key)
    if wakes:
        wake(using, row)
    return posted


def waits_for(row: Mapping[str, Any], channel: str) -> bool:
    """Whether a locked row waits for what is sent to this channel."""
    return row["status"] == "waiting" and channel in json.loads(row["awaiting"] or "[]")


def _find(using: str, row: Mapping[str, Any], channel: str, dedup_key: str) -> int | None:
    """The message with this key, whichever run of the chain it was sent to or taken by."""
    connection = connections[using]
    runs = value(connection, field_of(Message, "execution_id"), row["id"])
    if row["run"] > 1:
        runs = runs_of(using, row["chain_id"])
    rows = fetch(
        using,
        build(
            f"SELECT id FROM {TABLE} WHERE execution_id IN ({{runs}}) AND channel = {{channel}}"
            " AND dedup_key = {key} ORDER BY id LIMIT 1",
            runs=runs,
            channel=value(connection, field_of(Message, "channel"), channel),
            key=value(connection, field_of(Message, "dedup_key"), dedup_key),
        ),
    )
    return int(rows[0][0]) if rows else None


def put(using: str, row: Mapping[str, Any], channel: str, payload: str, accepted_at: datetime) -> None:
    """Store a message that was accepted at this time; the caller holds the execution's row exclusively."""
    _insert(using, row, channel, payload, None, accepted_at)


def _insert(
    using: str,
    row: Mapping[str, Any],
    channel: str,
    payload: str,
    dedup_key: str | None,
    accepted_at: datetime | None = None,
) -> Posted:
    connection = connections[using]
    values = {
        "execution_id": row["id"],
        "channel": channel,
        "payload": payload,
        "dedup_key": dedup_key,
        "accepted_at": accepted_at or sql_now(connection),
    }
    insert = insert_row(
        connection,
        Message,
        values,
        source=Sql("FROM (SELECT 1 AS one) AS one WHERE 1 = 1"),
        on_conflict="ON CONFLICT DO NOTHING RETURNING id",
    )
    rows = fetch(using, insert)
    if rows:
        return Posted(int(rows[0][0]), is_new=True)
    # Only a concurrent sender with the same dedup_key gets here; its row is committed by now.
    known = _find(using, row, channel, dedup_key or "")
    if known is None:
        raise ExecutionClosed(f"the message with dedup_key {dedup_key!r} is not visible; retry the transaction")
    return Posted(known, is_new=False)


def wake(using: str, row: Mapping[str, Any]) -> None:
    """Waiting → pending, with the next intent. The caller holds the execution's row exclusively."""
    connection = connections[using]
    intent = Intent(
        execution_id=row["id"],
        workflow=row["workflow"],
        version=row["version"],
        revision=row["revision"] + 1,
        epoch=row["epoch"],
        queue=row["queue"],
        priority=row["priority"],
        tenant=row["tenant"],
    )
    work = SpineWork(using).publish(intent)
    guard = build(
        f"UPDATE {EXECUTION} SET status = 'pending', wake_at = NULL, awaiting = '', revision = revision + 1"
        f" WHERE id = {{id}} AND status IN ({listed(SOURCES['wake'])}) RETURNING id",
        id=value(connection, field_of(Execution, "id"), row["id"]),
    )
    if run_guarded(using, guard, work.consequences()):
        work.finish()


def first_unread(
    using: str, execution_id: UUID, channels: Sequence[str], *, before: datetime | None
) -> Letter | None:
    """The oldest unread message of these channels that was accepted in time; the caller holds the row's lock.

    What a callback was decided with is read by every wait for it, like the result of a step.
    """
    if not channels:
        return None
    connection = connections[using]
    in_time = Sql("")
    if before is not None:
        moment = value(connection, field_of(Message, "accepted_at"), before)
        in_time = build(" AND accepted_at <= {moment}", moment=moment)
    names = ("id", "channel", "payload", "accepted_at")
    rows = fetch(
        using,
        build(
            f"SELECT {columns(Message, names)} FROM {TABLE} WHERE execution_id = {{id}}"
            " AND channel IN ({channels}) AND {unread}{in_time} ORDER BY id LIMIT 1",
            id=value(connection, field_of(Message, "execution_id"), execution_id),
            channels=join(", ", [value(connection, field_of(Message, "channel"), c) for c in channels]),
            unread=_UNREAD if any(c.startswith(CALLBACK) for c in channels) else "consumed_by IS NULL",
            in_time=in_time,
        ),
    )
    if not rows:
        return None
    row = convert(connection, Message, names, rows[0])
    return Letter(row["id"], row["channel"], row["payload"], as_utc(row["accepted_at"]))


def consume(using: str, message_id: int, position: int) -> int:
    """Mark a message as taken by a position; the number of rows, zero if it was taken already."""
    connection = connections[using]
    return execute(
        using,
        build(
            f"UPDATE {TABLE} SET consumed_by = {{position}} WHERE id = {{id}} AND consumed_by IS NULL",
            position=value(connection, field_of(Message, "consumed_by"), position),
            id=value(connection, field_of(Message, "id"), message_id),
        ),
    )


def answer(using: str, execution_id: UUID, position: int, encoded: str) -> Sql:
    """Write the reply to the update that a position took, as the consequence of a batch."""
    connection = connections[using]
    return build(
        f"UPDATE {TABLE} SET encoded_reply = {{reply}} WHERE execution_id = {{id}} AND consumed_by = {{position}}"
        " AND channel LIKE 'update:%%' AND {guard}",
        reply=value(connection, field_of(Message, "encoded_reply"), encoded),
        id=value(connection, field_of(Message, "execution_id"), execution_id),
        position=value(connection, field_of(Message, "consumed_by"), position),
    )
