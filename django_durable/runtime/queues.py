"""Which queues a worker serves when it names none: all that declarations and waiting work name."""

from __future__ import annotations

import time

from django_durable.authoring.registry import declared_queues
from django_durable.conf import config
from django_durable.models import DispatchHint

REFRESH_SECONDS = 5.0


class Queues:
    """A fixed list, or every queue there is, refreshed now and then by one index look-up a queue."""

    def __init__(self, using: str, fixed: tuple[str, ...] = ()) -> None:
        self._using = using
        self._fixed = fixed
        self._known: tuple[str, ...] = ()
        self._read_at = float("-inf")

    def names(self) -> tuple[str, ...]:
        """The queues to serve now."""
        if self._fixed:
            return self._fixed
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
