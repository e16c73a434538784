"""StepSession: what ``Session`` is to a step in its execution's turn, for one attempt that runs elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import NoReturn

from django_durable.engine.journal import Entry, Record
from django_durable.engine.lease_state import Lease
from django_durable.engine.ownership import Abandoned, Suspended
from django_durable.engine.persistence import persistently
from django_durable.engine.transitions.step_claim import ClaimedStep
from django_durable.engine.transitions.step_end import amend_step, hand_back, own_record, settle_step, try_again
from django_durable.errors import DurableError

ENDED = ("completed", "failed")


class StepSession:
    """One attempt's view of its checkpoint: it records under its own token, and stops when that is gone."""

    waits_for_retry = False
    """Each attempt has a hint of its own number: the next one is dispatched, also when it is due at once."""

    def __init__(self, claim: ClaimedStep, lease: Lease, stop: threading.Event | None = None) -> None:
        self.claim = claim
        self.lease = lease
        self.stop = stop or threading.Event()
        self.broken: DurableError | None = None
        self.started = False
        self.history: dict[int, Record] = {}

    def before_body(self) -> None:
        """Hand the attempt back where this process is to stop; stop where it is no longer ours."""
        if self.stop.is_set():
            persistently(self, lambda: hand_back(self.claim))
            raise Suspended
        if self.lease.cancelled or not self.lease.held:
            self.abandon("the lease was lost, or the execution cancelled")
        self.started = True

    def record(self, entry: Entry) -> None:
        """Record what became of the attempt, or of the one before it. Raises ``Abandoned`` where it is not ours."""
        write = settle_step if entry.changes["status"] in ENDED else amend_step
        self._write(lambda: write(self.claim, entry.changes), entry)

    def try_again_at(self, due_at: datetime, entry: Entry) -> NoReturn:
        """Record a failed attempt; the next one is dispatched for ``due_at``."""
        self._write(lambda: try_again(self.claim, entry.changes, due_at), entry)
        raise Suspended

    def rest_until(self, due_at: datetime) -> NoReturn:
        """The hint came too early: back to its time."""
        delay = max(0.0, (due_at - self.claim.now()).total_seconds())
        persistently(self, lambda: hand_back(self.claim, delay=delay))
        raise Suspended

    def expire(self, due_at: datetime | None, entry: Entry) -> bool:
        """Record, from another thread, that the attempt overran its time; whether the body was not faster."""
        if due_at is None:
            return settle_step(self.claim, entry.changes)
        return try_again(self.claim, entry.changes, due_at)

    def wait_under_lease(self, until: datetime) -> bool:
        """Wait for a short time without giving the attempt up; ``False`` if it should stop first."""
        while (remaining := (until - self.claim.now()).total_seconds()) > 0:
            if self.stop.wait(min(remaining, 0.2)) or self.lease.cancelled or not self.lease.held:
                return False
        return True

    def load(self) -> None:
        """Read the attempt's own checkpoint, which a commit may have changed whose answer was lost."""
        self.history[self.claim.record.position] = persistently(self, lambda: own_record(self.claim))

    def touch(self) -> bool:
        """Write the checkpoint without changing it, under the token."""
        return amend_step(self.claim, {"status": "pending"})

    def refuse_write(self) -> NoReturn:
        """End after a write that was refused."""
        self.abandon("the attempt is not ours any more")

    def abandon(self, why: str) -> NoReturn:
        """End without another write."""
        self.lease.lost = True
        raise Abandoned(why)

    def _write(self, write: Callable[[], bool], entry: Entry) -> None:
        status = entry.changes["status"]
        tried = False

        def attempt() -> bool:
            nonlocal tried
            if tried and status in ENDED and own_record(self.claim).status == status:
                return True
            tried = True
            return write()

        if not persistently(self, attempt):
            self.refuse_write()
