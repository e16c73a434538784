"""Which queues there is work in: those that a worker serves when it names none, and those with something due."""

from __future__ import annotations

import time

from django.db import connections

from django_durable.authoring.registry import declared_queues
from django_durable.clock import sql_now
from django_durable.conf import config
from django_durable.dispatch.flow_queue import refresh
from django_durable.dispatch.hints import TABLE
from django_durable.engine.transitions.hint_lease import LEVELS
from django_durable.models import DispatchHint
from django_durable.sql import build, fetch, field_of, join, value

REFRESH_SECONDS = 5.0


class Queues:
    """A fixed list, or every queue there is, refreshed now and then by one index look-up a queue."""

    def __init__(self, using: str, fixed: tuple[str, ...] = ()) -> None:
        self._using = using
        self.chosen = fixed
        self._known: tuple[str, ...] = ()
        self._read_at = float("-inf")

    def names(self) -> tuple[str, ...]:
        """The queues to serve now."""
        refresh(self._using, at_most_every=REFRESH_SECONDS)
        if self.chosen:
            return self.chosen
        if time.monotonic() - self._read_at > REFRESH_SECONDS:
            found = {config().default_queue, *declared_queues(), *waiting_queues(self._using)}
            self._known = tuple(sorted(found))
            self._read_at = time.monotonic()
        return self._known


def waiting_queues(using: str) -> list[str]:
    """Every queue that has a live hint: a loose index scan, one look-up a queue, whatever the backlog."""
    found: list[str] = []
    rows = DispatchHint.objects.using(using)
    while True:
        later = rows.filter(state=DispatchHint.State.LIVE, queue__gt=found[-1] if found else "")
        name = later.order_by("queue").values_list("queue", flat=True).first()
        if name is None:
            return found
        found.append(name)


def due_ranges(using: str) -> list[tuple[str, int]]:
    """The queues and levels that have something due: one statement, one look-up each."""
    connection = connections[using]
    levels = [
        build(
            "({queue}, {level})",
            queue=value(connection, field_of(DispatchHint, "queue"), queue),
            level=value(connection, field_of(DispatchHint, "priority"), level),
        )
        for queue in waiting_queues(using)
        for level in LEVELS
    ]
    if not levels:
        return []
    # The first of each range, by its order: a planner that expects many rows would look for any by reading all.
    statement = build(
        f"WITH level(queue, priority) AS (VALUES {{levels}}) SELECT queue, priority FROM level WHERE"
        f" (SELECT h.due_at FROM {TABLE} h WHERE h.state = {{live}} AND h.queue = level.queue"
        " AND h.priority = level.priority ORDER BY h.due_at LIMIT 1) <= {now}",
        levels=join(", ", levels),
        live=value(connection, field_of(DispatchHint, "state"), DispatchHint.State.LIVE),
        now=sql_now(connection),
    )
    return [(queue, level) for queue, level in fetch(using, statement)]
