"""LeaseKeeper: renews every lease of this process from a thread and a connection of its own.

Renewal touches the hint table only. C code that holds the interpreter's lock for longer than the lease stops
this thread too: another worker then repeats the step, and nothing commits twice.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections

from django_durable.dispatch.hints import renew
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import drop_broken_connection
from django_durable.engine.lease_state import Clock, Lease
from django_durable.engine.transitions.recover import time_out_claimed
from django_durable.planes.selection import spine_alias
from django_durable.quiet import report

logger = logging.getLogger("django_durable")

CLOCK_PAUSE_SECONDS = 1.0
"""A clock whose action failed rings again after so long."""


class LeaseKeeper:
    """All leases of one process, renewed every third of the lease in one statement."""

    def __init__(self, lease_seconds: float) -> None:
        self.lease_seconds = lease_seconds
        self._held: dict[UUID, Lease] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._failing = False
        self._pid = os.getpid()

    def hold(self, claim: Claimed) -> Lease:
        """Begin to keep a claim's lease."""
        lease = Lease(claim.hint_id, claim.token, claim.sent_at + claim.lease_seconds)
        deadline = claim.row["deadline"]
        if deadline is not None:
            remaining = (deadline - claim.now()).total_seconds()
            lease.set_clock("deadline", time.monotonic() + remaining, lambda: _overrun(claim, lease))
        with self._changed:
            if self._thread is None:
                thread = threading.Thread(target=self._keep, name="durable-leases", daemon=True)
                thread.start()
                self._thread = thread
            self._held[claim.hint_id] = lease
            self._changed.notify()
        return lease

    def drop(self, lease: Lease) -> None:
        """The turn is over; its transition has dealt with the hint."""
        with self._changed:
            if self._held.get(lease.hint_id) is lease:
                del self._held[lease.hint_id]

    def close(self) -> None:
        """Stop renewing and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _keep(self) -> None:
        next_renewal = time.monotonic() + self.lease_seconds / 3
        try:
            while True:
                with self._changed:
                    if self._closing:
                        return
                    self._changed.wait(max(0.005, self._next_event(next_renewal) - time.monotonic()))
                    held = list(self._held.values())
                self._ring(held)
                if time.monotonic() >= next_renewal:
                    self._renew_in_time(held, next_renewal)
                    next_renewal = time.monotonic() + self.lease_seconds / 3
        finally:
            connections[spine_alias()].close()

    def _renew_in_time(self, held: list[Lease], due_at: float) -> None:
        """Whatever goes wrong, the leases of all other turns depend on this thread: it goes on."""
        try:
            self._warn_if_late(time.monotonic(), due_at, held)
            self._renew(held)
        except Exception as error:
            report(error, "leases could not be renewed; trying again until they end")

    def _next_event(self, next_renewal: float) -> float:
        clocks = [clock for lease in self._held.values() if (clock := lease.next_clock()) is not None]
        # A clock may be set while this thread waits: look again soon.
        return min([next_renewal, time.monotonic() + 0.25, *clocks])

    def _warn_if_late(self, now: float, next_renewal: float, held: list[Lease]) -> None:
        if held and now - next_renewal > self.lease_seconds / 3:
            logger.warning(
                "leases were renewed %.1f s late (lease %.1f s): the process stood still, or code held the"
                " interpreter's lock",
                now - next_renewal,
                self.lease_seconds,
            )

    def _renew(self, held: list[Lease]) -> None:
        held = [lease for lease in held if not lease.lost]
        if not held:
            return
        using = spine_alias()
        sent_at = time.monotonic()
        try:
            renewed, locked = renew(using, [(lease.hint_id, lease.token) for lease in held], self.lease_seconds)
        except (DatabaseError, InterfaceError):
            self._failed(using)
            return
        self._failing = False
        states = {renewal.hint_id: renewal.revoked for renewal in renewed}
        for lease in held:
            if lease.hint_id in states:
                lease.ends = sent_at + self.lease_seconds
                lease.revoked = lease.revoked or states[lease.hint_id]
            elif lease.hint_id not in locked:
                lease.lost = True

    def _failed(self, using: str) -> None:
        """Unknown, not lost: the leases stand until their local end."""
        if not self._failing:
            logger.warning("leases could not be renewed on %r; trying again until they end", using)
        self._failing = True
        try:
            drop_broken_connection(using)
        except (DatabaseError, InterfaceError):
            connections[using].close()

    def _ring(self, held: list[Lease]) -> None:
        """Run what has to happen now, each in a thread of its own: it may wait for a row lock."""
        for lease in held:
            clock = lease.take_rung_clock()
            if clock is None:
                continue
            try:
                threading.Thread(target=_run_clock, args=(lease, clock), name="durable-clock", daemon=True).start()
            except Exception as error:
                _put_back(lease, clock, error)


def _overrun(claim: Claimed, lease: Lease) -> None:
    """The execution's deadline passed while its turn still runs: a take-over as ``timed_out``, or undo first."""
    time_out_claimed(claim, lease)


def _run_clock(lease: Lease, clock: Clock) -> None:
    try:
        clock.action()
    except Exception as error:
        _put_back(lease, clock, error)
    finally:
        connections.close_all()


def _put_back(lease: Lease, clock: Clock, error: Exception) -> None:
    """The keeper goes on renewing, so nothing else would end what overran its time."""
    report(error, "what overran its time could not be fenced; trying again")
    lease.ring_again(clock, time.monotonic() + CLOCK_PAUSE_SECONDS)


_keeper: LeaseKeeper | None = None
_lock = threading.Lock()


def process_keeper(lease_seconds: float) -> LeaseKeeper:
    """The keeper of this process; a forked child gets one of its own."""
    global _keeper
    with _lock:
        if (
            _keeper is None
            or _keeper._pid != os.getpid()
            or _keeper._closing
            or _keeper.lease_seconds != lease_seconds
        ):
            _keeper = LeaseKeeper(lease_seconds)
        return _keeper
