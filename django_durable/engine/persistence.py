"""persistently: repeat a statement through lost connections and lock trouble for as long as the lease may hold."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import NoReturn, Protocol, TypeVar

from django.db import InterfaceError, OperationalError, connections

from django_durable.database_errors import is_contention, is_disconnect
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import drop_broken_connection
from django_durable.engine.lease_state import Lease
from django_durable.engine.ownership import Abandoned
from django_durable.planes.selection import spine_alias

T = TypeVar("T")

CODEC_PAUSE_SECONDS = 5.0
"""What is given up because a payload codec cannot be reached is due again after so long."""


class Holder(Protocol):
    """Who writes under a lease."""

    @property
    def claim(self) -> Claimed: ...

    @property
    def lease(self) -> Lease: ...

    def abandon(self, why: str) -> NoReturn:
        """End without another write."""


def last_word(holder: Holder, attempt: Callable[[], object]) -> None:
    """``persistently``, for what nothing follows: where the lease ends before it, a take-over does the rest."""
    try:
        persistently(holder, attempt)
    except Abandoned:
        pass


def persistently(holder: Holder, attempt: Callable[[], T]) -> T:
    """Repeat ``attempt``; within an open transaction its error is the caller's.

    A statement that had been committed although an error came back is recognised by its refusal. A lease on another
    database is renewed while the plane is away: there the turn is given up after the time of one lease, or a plane's
    outage would hold the slots that the tenants of the others need.
    """
    using = holder.claim.using
    number = 0
    until = float("inf")
    while True:
        try:
            return attempt()
        except (OperationalError, InterfaceError) as error:
            if connections[using].in_atomic_block:
                raise
            if not (is_contention(error) or is_disconnect(error)):
                raise
            if number == 0 and using != spine_alias():
                until = time.monotonic() + holder.claim.lease_seconds
            if not holder.lease.held or time.monotonic() >= until:
                holder.abandon("the database could not be reached before the lease ended")
            number += 1
            time.sleep(random.uniform(0, min(1.0, 0.02 * 2**number)))
            drop_broken_connection(using)
