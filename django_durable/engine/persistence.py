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

T = TypeVar("T")


class Holder(Protocol):
    """Who writes under a lease."""

    @property
    def claim(self) -> Claimed: ...

    @property
    def lease(self) -> Lease: ...

    def abandon(self, why: str) -> NoReturn:
        """End without another write."""


def persistently(holder: Holder, attempt: Callable[[], T]) -> T:
    """Repeat ``attempt``; within an open transaction its error is the caller's.

    A statement that had been committed although an error came back is recognised by its refusal.
    """
    using = holder.claim.using
    number = 0
    while True:
        try:
            return attempt()
        except (OperationalError, InterfaceError) as error:
            if connections[using].in_atomic_block:
                raise
            if not (is_contention(error) or is_disconnect(error)):
                raise
            if not holder.lease.held:
                holder.abandon("the database could not be reached before the lease ended")
            number += 1
            time.sleep(random.uniform(0, min(1.0, 0.02 * 2**number)))
            drop_broken_connection(using)
