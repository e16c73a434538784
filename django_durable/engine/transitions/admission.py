"""Admission: lease hints of a queue with limits, as many as the limits allow, in the order that it declares.

Who admits locks the queue's row on the spine first, so that two never count at once. A slot belongs to a leased hint
and goes with it: an acknowledgement, an end, a suspension and a hand-over free it in their own transaction, and a
lapsed lease frees it a second later. A start that counts against the rate is a row, written with the lease.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connections, transaction

from django_durable.clock import sql_after, sql_now
from django_durable.dispatch.hints import QUEUES
from django_durable.dispatch.hints import TABLE as HINT
from django_durable.engine.contention import repeated
from django_durable.engine.transitions.hint_lease import LEVELS, Odd, Terms, lease_columns, runnable
from django_durable.models import DispatchHint, QueueLimit, QueueStart
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
    value,
)

START = QueueStart._meta.db_table

GRACE_SECONDS = 1.0
"""A lapsed lease keeps its slot so long: its holder's last renewal may not have been committed yet."""

LIMITS = ("name", "concurrency", "rate", "period_seconds", "fair", "sequence", "paused", "last_lane")
LEASED = ("id", "token", "execution_id", "revision", "epoch", "plane", "position", "item", "kind", "lane", "opening")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A queue's limits, and what is left of them; ``None``: any number."""

    name: str
    fair: str
    newest_first: bool
    last_lane: str
    slots: int | None
    starts: int | None
    period_seconds: float
    held: int
    opens_at: datetime | None
    """When the next start is allowed, where none is now."""

    @property
    def closed(self) -> bool:
        """Whether nothing can be admitted now: paused, or every slot is held."""
        return self.slots == 0

    def up_to(self, most: int) -> int:
        """How many may be leased, of what begins nothing."""
        return most if self.slots is None else min(most, self.slots)


def rooms_of(spine: str, queues: Iterable[str]) -> list[Room]:
    """What is left in these queues now, as far as can be seen without a lock: one statement."""
    connection = connections[spine]
    names = [value(connection, field_of(QueueLimit, "name"), queue) for queue in queues]
    if not names:
        return []
    statement = build(
        f"SELECT {columns(QueueLimit, LIMITS, 'q.')}, {{held}}, {{recent}}, {{first}} FROM {QUEUES} q"
        " WHERE q.name IN ({names}) ORDER BY q.name",
        held=_held(spine),
        recent=_recent(spine, "count(*)"),
        first=_recent(spine, "min(s.at)"),
        names=join(", ", names),
    )
    return [_room(spine, row) for row in fetch(spine, statement)]


def admit(spine: str, terms: Terms, room: Room, planes: Sql | None) -> list[Odd]:
    """Lease what may begin or go on in this queue, ``terms.limit`` at most."""
    if room.closed or not _any_due(spine, terms, room, planes):
        return []  # an idle worker takes no lock

    def attempt() -> list[Odd]:
        with transaction.atomic(using=spine):
            return _admit(spine, terms, room.name, planes)

    return repeated(spine, attempt)


def _admit(spine: str, terms: Terms, queue: str, planes: Sql | None) -> list[Odd]:
    if not _lock(spine, queue):
        return []
    # In a statement of its own: it sees what the previous holder of the lock has leased.
    rooms = rooms_of(spine, [queue])
    if not rooms or rooms[0].closed:
        return []
    room, sent_at = rooms[0], time.monotonic()
    leased = _lease_in_rounds(spine, terms, room, planes)
    if leased and room.fair:
        _note_lane(spine, queue, leased[-1]["lane"])
    if room.starts is not None:
        _note_starts(spine, queue, sum(row["opening"] for row in leased), room.period_seconds)
    return [_odd(row, sent_at) for row in leased]


def _odd(row: dict[str, Any], sent_at: float) -> Odd:
    known = {name: row[name] for name in LEASED if name not in ("id", "lane", "opening")}
    return Odd(hint_id=row["id"], sent_at=sent_at, **known)


def _lock(spine: str, queue: str) -> bool:
    """Change the row: a snapshot older than the previous holder's commit is refused, whatever the isolation."""
    here = _queue(spine, queue)
    return bool(execute(spine, build(f"UPDATE {QUEUES} SET passes = passes + 1 WHERE name = {{here}}", here=here)))


def _queue(spine: str, queue: str) -> Sql:
    return value(connections[spine], field_of(QueueLimit, "name"), queue)


def _held(spine: str) -> Sql:
    # In the words of the partial index: SQLite takes it for no others.
    return build(
        f"(SELECT count(*) FROM {HINT} h WHERE h.queue = q.name AND NOT (h.lane = '') AND h.token IS NOT NULL"
        " AND h.due_at > (SELECT {grace}))",
        grace=sql_after(connections[spine], -GRACE_SECONDS),
    )


def _recent(spine: str, what: str) -> Sql:
    """Of the starts within the last period."""
    connection = connections[spine]
    now = sql_now(connection)
    if is_postgres(connection):
        since = build("(SELECT {now} - q.period_seconds * interval '1 second')", now=now)
    else:
        since = build(
            "(strftime('%%Y-%%m-%%d %%H:%%M:%%f', {now}, (-q.period_seconds) || ' seconds') || '000')", now=now
        )
    return build(f"(SELECT {what} FROM {START} s WHERE s.queue = q.name AND s.at > {{since}})", since=since)


def _room(spine: str, row: tuple[Any, ...]) -> Room:
    connection = connections[spine]
    limits = convert(connection, QueueLimit, LIMITS, row[: len(LIMITS)])
    held, recent, first = row[len(LIMITS) :]
    first = convert(connection, QueueStart, ["at"], [first])["at"]
    concurrency, rate = limits["concurrency"], limits["rate"]
    slots = None if concurrency is None else max(0, concurrency - held)
    starts = None if rate is None else max(0, rate - recent)
    period = limits["period_seconds"] or 0.0
    return Room(
        name=limits["name"],
        fair=limits["fair"],
        newest_first=limits["sequence"] == QueueLimit.Order.LIFO,
        last_lane=limits["last_lane"],
        slots=0 if limits["paused"] else slots,
        starts=starts,
        period_seconds=period,
        held=held,
        opens_at=None if starts != 0 or first is None else first + timedelta(seconds=period),
    )


def _any_due(spine: str, terms: Terms, room: Room, planes: Sql | None) -> bool:
    due = _due(spine, terms, room, planes, only_going_on=room.starts == 0)
    if not is_postgres(connections[spine]):
        return bool(fetch(spine, build(f"SELECT 1 FROM {HINT} h WHERE {{due}} LIMIT 1", due=due)))
    # One range of the index for each level: a planner that expects many rows would look for any by reading all.
    return bool(
        fetch(
            spine,
            build(
                f"SELECT 1 FROM {_EACH_LEVEL} CROSS JOIN LATERAL (SELECT 1 FROM {HINT} h WHERE {{due}}"
                " AND h.priority = level.priority ORDER BY h.due_at LIMIT 1) AS p LIMIT 1",
                due=due,
            ),
        )
    )


_EACH_LEVEL = f"(VALUES {', '.join(f'({level})' for level in LEVELS)}) AS level(priority)"


def _due(spine: str, terms: Terms, room: Room, planes: Sql | None, *, only_going_on: bool) -> Sql:
    """What of the queue may be leased by its time, its code and its plane."""
    parts = [
        runnable(spine, terms, planes),
        build("h.queue = {queue} AND NOT (h.lane = '')", queue=_queue(spine, room.name)),
    ]
    if only_going_on:
        parts.append(Sql("NOT h.opening"))
    return join(" AND ", parts)


def _lease_in_rounds(spine: str, terms: Terms, room: Room, planes: Sql | None) -> list[dict[str, Any]]:
    """Round after round, one from each who has something due, beginning behind whoever was last."""
    leased: list[dict[str, Any]] = []
    left, starts = room.up_to(terms.limit), room.starts
    lane = room.last_lane if room.fair else ""
    while left > 0:
        most = left if not starts else min(left, starts)
        due = _due(spine, terms, room, planes, only_going_on=starts == 0)
        found = _lease_one_round(spine, terms, room, due, lane, most)
        if not found and not lane:
            break  # a whole round found nothing
        leased += found
        left -= len(found)
        if starts is not None:
            starts -= sum(row["opening"] for row in found)
        # Past the last lane it goes on with the first.
        lane = found[-1]["lane"] if room.fair and len(found) == most else ""
    return leased


def _lease_one_round(spine: str, terms: Terms, room: Room, due: Sql, after: str, most: int) -> list[dict[str, Any]]:
    connection = connections[spine]
    postgres = is_postgres(connection)
    statement = build(
        f"WITH RECURSIVE {{lanes}}, picked AS {'MATERIALIZED' if postgres else ''} ({{picked}})"
        f" UPDATE {HINT} SET {{leased}} WHERE id IN (SELECT id FROM picked)"
        f" RETURNING {columns(DispatchHint, LEASED)}",
        lanes=_lanes(spine, terms, room, after),
        picked=(_picked if postgres else _picked_by_look_up)(room, due, most),
        leased=lease_columns(spine, terms, Sql("gen_random_uuid()" if postgres else "lower(hex(randomblob(16)))")),
    )
    found = [convert(connection, DispatchHint, LEASED, row) for row in fetch(spine, statement)]
    return sorted(found, key=lambda row: str(row["lane"]))


def _lanes(spine: str, terms: Terms, room: Room, after: str) -> Sql:
    """Those who take turns, in the order of their marks: one look-up each, whatever they have waiting."""
    queue = _queue(spine, room.name)
    here = f"h.state = {int(terms.state)} AND h.queue = {{queue}} AND NOT (h.lane = '')"
    bound = value(connections[spine], field_of(DispatchHint, "lane"), after)
    return build(
        f"lanes(lane) AS (SELECT (SELECT h.lane FROM {HINT} h WHERE {here} AND h.lane > {{after}}"
        f" ORDER BY h.lane LIMIT 1) UNION ALL SELECT (SELECT h.lane FROM {HINT} h WHERE {here}"
        " AND h.lane > lanes.lane ORDER BY h.lane LIMIT 1) FROM lanes WHERE lanes.lane IS NOT NULL)",
        queue=queue,
        after=bound,
    )


def _picked(room: Room, due: Sql, most: int) -> Sql:
    """PostgreSQL: of each lane its next one, level by level, past what is locked; of the only lane as many as fit."""
    each = 1 if room.fair else most
    newest = "DESC" if room.newest_first else "ASC"
    return build(
        f"SELECT p.id FROM lanes CROSS JOIN LATERAL (SELECT o.id FROM {_EACH_LEVEL} CROSS JOIN LATERAL"
        f" (SELECT h.id FROM {HINT} h WHERE {{due}} AND h.lane = lanes.lane AND h.priority = level.priority"
        f" ORDER BY h.due_at {newest} LIMIT {each} FOR UPDATE SKIP LOCKED) AS o LIMIT {each}) AS p LIMIT {most}",
        due=due,
    )


def _picked_by_look_up(room: Room, due: Sql, most: int) -> Sql:
    """Elsewhere: the next one of each lane."""
    newest = "DESC" if room.newest_first else "ASC"
    return build(
        f"SELECT p.id FROM (SELECT (SELECT h.id FROM {HINT} h WHERE {{due}} AND h.lane = lanes.lane"
        f" ORDER BY h.priority DESC, h.due_at {newest} LIMIT 1) AS id FROM lanes WHERE lanes.lane IS NOT NULL) AS p"
        f" WHERE p.id IS NOT NULL LIMIT {most}",
        due=due,
    )


def _note_lane(spine: str, queue: str, lane: str) -> None:
    bound = value(connections[spine], field_of(QueueLimit, "last_lane"), lane)
    execute(
        spine,
        build(f"UPDATE {QUEUES} SET last_lane = {{lane}} WHERE name = {{q}}", lane=bound, q=_queue(spine, queue)),
    )


def _note_starts(spine: str, queue: str, count: int, period: float) -> None:
    """One row a start; those that no window reaches any more go."""
    connection = connections[spine]
    name = value(connection, field_of(QueueStart, "queue"), queue)
    for _ in range(count):
        execute(spine, insert_row(connection, QueueStart, {"queue": queue, "at": sql_now(connection)}))
    old = sql_after(connection, -period)
    execute(
        spine, build(f"DELETE FROM {START} WHERE queue = {{name}} AND at <= (SELECT {{old}})", name=name, old=old)
    )
