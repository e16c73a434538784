"""Messages for due work: what a tick sends where a message broker carries the work.

Nudges after commit are the fast path. This finds the rest: timers, lapsed leases, lost messages, and work that
other code was blocked by. A pass reads the first due hints of each queue and level, one index range each, and
sends those that were not sent lately. A message too many is a no-op.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from uuid import UUID

from django.db import connections

from django_durable.authoring.registry import code_digest, served_hashes
from django_durable.clock import sql_until_now
from django_durable.conf import config
from django_durable.dispatch.flow_queue import REFRESH_SECONDS, refresh
from django_durable.dispatch.hints import TABLE
from django_durable.engine.transitions.admission import rooms_of
from django_durable.engine.transitions.claim_planes import planes_to_try
from django_durable.engine.transitions.hint_lease import LEVELS
from django_durable.models import DispatchHint
from django_durable.runtime.queues import waiting_queues
from django_durable.runtime.tick import claim_pass_of
from django_durable.sql import Sql, build, columns, convert, fetch, field_of, join, value

Put = Callable[[UUID, str], bool]
"""Sends a hint's id to a queue; ``False`` where it cannot be taken now."""
Due = tuple[UUID, datetime, str]
"""A hint's id, when it was due, and its queue."""

WINDOW = 500
"""Due hints of one level that a pass looks at, the oldest of each queue: so many may wait in the broker."""
LEAST_PER_QUEUE = 20
SPARE = 2
"""Messages to a queue whose rate is used up: for what goes on there, which is no start."""
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
        sent, taken = self._send(due_hints(using), put, lease, 4 * lease, rooms_left(using))
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

    def _send(
        self, hints: list[Due], put: Put, pause: float, longest: float, rooms: Mapping[str, int] | None = None
    ) -> tuple[int, bool]:
        """How many were sent, and whether all could be. ``rooms``: how many a queue with limits may admit now."""
        sent = 0
        left = dict(rooms or {})
        for hint_id, due_at, queue in hints:
            if left.get(queue, 1) < 1 or not self._sent.is_due(hint_id, due_at, pause, longest):
                continue
            if queue in left:
                left[queue] -= 1
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
        page = blocked_hints(using, self._blocked_after)
        self._blocked_after = page[-1][0] if len(page) == WINDOW else None
        return page


def blocked_hints(using: str, after: UUID | None) -> list[Due]:
    """The next hints in key order that other code was blocked by, and that this code may know better."""
    known, planes = served_hashes(), planes_to_try(using, None, own=True)
    if not known or planes is None:
        return []
    names = ("id", "due_at", "queue")
    # The state by its number, not by a parameter: a plan for any state would read the whole table in key order.
    statement = build(
        f"SELECT {columns(DispatchHint, names, 'h.')} FROM {TABLE} h"
        f" WHERE h.state = {DispatchHint.State.BLOCKED.value} AND h.definition IN ({{known}}) AND h.avoid <> {{code}}"
        f" AND {{planes}}{{later}} ORDER BY h.id LIMIT {WINDOW}",
        known=join(", ", [_bound(using, "definition", each) for each in known]),
        code=_bound(using, "avoid", code_digest()),
        planes=planes,
        later=Sql("") if after is None else build(" AND h.id > {after}", after=_bound(using, "id", after)),
    )
    rows = [convert(connections[using], DispatchHint, names, row) for row in fetch(using, statement)]
    return [(row["id"], row["due_at"], row["queue"]) for row in rows]


def rooms_left(using: str) -> dict[str, int]:
    """How many messages a pass sends to each queue with limits: as many as it has slots, and what it begins.

    A message there is a permission to take the next one, so more of them would find nothing.
    """
    rooms = rooms_of(using, refresh(using, at_most_every=REFRESH_SECONDS))
    return {room.name: room.up_to(WINDOW if room.starts is None else room.starts + SPARE) for room in rooms}


def due_hints(using: str) -> list[Due]:
    """Live hints of what this code knows that are due and free: by priority, then the oldest first."""
    queues, known = waiting_queues(using), served_hashes()
    # Those of a plane that is away wait for it: a window full of them would hide everybody else's.
    planes = planes_to_try(using, None, own=True)
    if not queues or not known or planes is None:
        return []
    limit = max(LEAST_PER_QUEUE, WINDOW // len(queues))
    ranges = [_range(using, queue, level, known, planes, limit) for level in LEVELS for queue in queues]
    names = ("id", "due_at", "queue", "priority")
    rows = fetch(using, join(" UNION ALL ", ranges))
    found = [convert(connections[using], DispatchHint, names, row) for row in rows]
    found.sort(key=lambda row: (-row["priority"], row["due_at"]))
    return [(row["id"], row["due_at"], row["queue"]) for row in found]


def _range(using: str, queue: str, level: int, known: tuple[str, ...], planes: Sql, limit: int) -> Sql:
    """One range of the index. A held lease ends in the future, so what is due is free or has lapsed."""
    return build(
        f"SELECT * FROM (SELECT h.id, h.due_at, h.queue, h.priority FROM {TABLE} h WHERE h.state = {{live}}"
        " AND h.queue = {queue} AND h.priority = {level} AND h.due_at <= {now} AND h.definition IN ({known})"
        " AND {planes} ORDER BY h.due_at LIMIT {limit}) AS one_range",
        live=_bound(using, "state", DispatchHint.State.LIVE),
        queue=_bound(using, "queue", queue),
        level=_bound(using, "priority", level),
        now=sql_until_now(connections[using]),
        known=join(", ", [_bound(using, "definition", each) for each in known]),
        planes=planes,
        limit=Sql("%s", (limit,)),
    )


def _bound(using: str, name: str, item: object) -> Sql:
    return value(connections[using], field_of(DispatchHint, name), item)


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
