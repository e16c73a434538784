"""Messages for due work: what a tick sends where a message broker carries the work.

Nudges after commit are the fast path. This finds the rest: timers, lapsed leases, lost messages, and work that
other code was blocked by. A pass reads the first due hints of each queue and level, one index range each, and
sends those that were not sent lately. A message too many is a no-op.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from django.db import connections

from django_durable.authoring.registry import code_digest, served_hashes
from django_durable.clock import sql_until_now
from django_durable.conf import config
from django_durable.dispatch.hints import TABLE
from django_durable.engine.transitions.hint_lease import LEVELS
from django_durable.models import DispatchHint
from django_durable.runtime.queues import waiting_queues
from django_durable.runtime.tick import claim_pass_of
from django_durable.sql import Sql, build, convert, fetch, field_of, join, value

Put = Callable[[UUID, str], bool]
"""Sends a hint's id to a queue; ``False`` where it cannot be taken now."""
Due = tuple[UUID, datetime, str]
"""A hint's id, when it was due, and its queue."""

WINDOW = 500
"""Due hints of one level that a pass looks at, the oldest of each queue: so many may wait in the broker."""
LEAST_PER_QUEUE = 20
BLOCKED_SECONDS = 20.0
"""Between two looks at blocked work, and two messages for one such hint."""


_MOMENT = struct.Struct("<d")


class MessagesDue:
    """The passes of one worker. What was sent, and when, is in memory that its forked processes share."""

    def __init__(self) -> None:
        self._sent = SentMessages()
        self._ticked = mmap.mmap(-1, _MOMENT.size)
        self.note_tick()
        self._blocked_at = float("-inf")
        self._blocked_after: UUID | None = None

    def send(self, using: str, put: Put) -> int:
        """One pass, unless another process has just made one; how many messages were sent.

        A hint that still waits is sent again after the lease's time, later after up to four times that.
        """
        settings = config()
        if not claim_pass_of(using, "messages", settings.tick_seconds / 2):
            return 0
        lease = settings.lease_seconds
        sent, taken = self._send(due_hints(using), put, lease, 4 * lease)
        if taken:
            more, _taken = self._send(self._blocked_hints(using), put, BLOCKED_SECONDS, BLOCKED_SECONDS)
            sent += more
        return sent

    def note_tick(self) -> None:
        """Somebody has just ticked."""
        _MOMENT.pack_into(self._ticked, 0, time.monotonic())

    @property
    def seconds_without_tick(self) -> float:
        """How long no process of this worker has seen a tick."""
        (ticked_at,) = _MOMENT.unpack_from(self._ticked)
        return time.monotonic() - float(ticked_at)

    def _send(self, hints: list[Due], put: Put, pause: float, longest: float) -> tuple[int, bool]:
        """How many were sent, and whether all could be."""
        sent = 0
        for hint_id, due_at, queue in hints:
            if not self._sent.is_due(hint_id, due_at, pause, longest):
                continue
            if not put(hint_id, queue):
                return sent, False
            self._sent.note(hint_id, due_at)
            sent += 1
        return sent, True

    def _blocked_hints(self, using: str) -> list[Due]:
        """The next page of what other code was blocked by, in key order; from the start every while."""
        if self._blocked_after is None and time.monotonic() - self._blocked_at < BLOCKED_SECONDS:
            return []
        self._blocked_at = time.monotonic()
        # By its number, not by a parameter: a plan for any state would read the whole table in key order.
        rows = DispatchHint.objects.using(using).extra(where=[f"state = {DispatchHint.State.BLOCKED.value}"])
        rows = rows.filter(definition__in=served_hashes()).exclude(avoid=code_digest())
        if self._blocked_after is not None:
            rows = rows.filter(pk__gt=self._blocked_after)
        page: list[Due] = list(rows.order_by("pk").values_list("pk", "due_at", "queue")[:WINDOW])
        self._blocked_after = page[-1][0] if len(page) == WINDOW else None
        return page


def due_hints(using: str) -> list[Due]:
    """Live hints of what this code knows that are due and free: by priority, then the oldest first."""
    queues, known = waiting_queues(using), served_hashes()
    if not queues or not known:
        return []
    limit = max(LEAST_PER_QUEUE, WINDOW // len(queues))
    ranges = [_range(using, queue, level, known, limit) for level in LEVELS for queue in queues]
    names = ("id", "due_at", "queue", "priority")
    rows = fetch(using, join(" UNION ALL ", ranges))
    found = [convert(connections[using], DispatchHint, names, row) for row in rows]
    found.sort(key=lambda row: (-row["priority"], row["due_at"]))
    return [(row["id"], row["due_at"], row["queue"]) for row in found]


def _range(using: str, queue: str, level: int, known: tuple[str, ...], limit: int) -> Sql:
    """One range of the index. A held lease ends in the future, so what is due is free or has lapsed."""
    connection = connections[using]

    def bound(name: str, item: object) -> Sql:
        return value(connection, field_of(DispatchHint, name), item)

    return build(
        f"SELECT * FROM (SELECT id, due_at, queue, priority FROM {TABLE} WHERE state = {{live}}"
        " AND queue = {queue} AND priority = {level} AND due_at <= {now} AND definition IN ({known})"
        " ORDER BY due_at LIMIT {limit}) AS one_range",
        live=bound("state", DispatchHint.State.LIVE),
        queue=bound("queue", queue),
        level=bound("priority", level),
        now=sql_until_now(connection),
        known=join(", ", [bound("definition", each) for each in known]),
        limit=Sql("%s", (limit,)),
    )


class SentMessages:
    """Which hints were sent when and how often, for the time that they were due at.

    A table of fixed size in shared memory without locks: where two processes write at once, or there is no room,
    something is forgotten, and one message too many is sent.
    """

    _ROW = struct.Struct("<QdI4x")  # hint and due time, monotonic time of the last message, how many
    _ROWS = 1 << 14
    _TRIES = 8

    def __init__(self) -> None:
        self._table = mmap.mmap(-1, self._ROW.size * self._ROWS)

    def is_due(self, hint_id: UUID, due_at: datetime, pause: float, longest: float) -> bool:
        """Whether it was never sent, or not for ``pause`` seconds, doubled each time up to ``longest``."""
        key = _key(hint_id, due_at)
        for place in self._places(key):
            known, sent_at, count = self._ROW.unpack_from(self._table, place)
            if known == key:
                wait = min(longest, pause * 2.0 ** min(count - 1, 16))
                return bool(time.monotonic() - sent_at >= wait)
        return True

    def note(self, hint_id: UUID, due_at: datetime) -> None:
        """It has been sent now."""
        key = _key(hint_id, due_at)
        rows = [(place, *self._ROW.unpack_from(self._table, place)) for place in self._places(key)]
        mine = next((row for row in rows if row[1] == key), None)
        place, _known, _sent_at, count = mine or (*min(rows, key=lambda row: row[2])[:3], 0)
        self._ROW.pack_into(self._table, place, key, time.monotonic(), min(count, 1 << 16) + 1)

    def _places(self, key: int) -> list[int]:
        return [(key + offset) % self._ROWS * self._ROW.size for offset in range(self._TRIES)]


def _key(hint_id: UUID, due_at: datetime) -> int:
    """64 bits, never 0: the hint's random ones with the due time in them, which changes when it is put back."""
    moment = round(due_at.timestamp() * 1_000_000)
    return ((hint_id.int ^ moment * 0x9E3779B97F4A7C15) & ((1 << 64) - 1)) or 1
