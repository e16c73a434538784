"""AttemptClocks: the limits of one attempt that ring while its body still runs."""

from __future__ import annotations

import time
from collections.abc import Callable

from django_durable.authoring.step import StepOptions
from django_durable.engine.lease_state import Lease


class AttemptClocks:
    """Past a limit the renewal thread calls ``expire`` with its name, which takes the turn's token away."""

    def __init__(self, lease: Lease, options: StepOptions, expire: Callable[[str], None]) -> None:
        self._lease = lease
        self._options = options
        self._expire = expire

    def start(self, spent: float) -> None:
        """A body begins; ``spent`` seconds have passed since the first attempt did."""
        options = self._options
        allowed = [(options.timeout, "timeout")]
        if options.total_timeout is not None:
            allowed.append((max(0.0, options.total_timeout - spent), "total_timeout"))
        limits = [(limit, clock) for limit, clock in allowed if limit is not None]
        if limits:
            limit, clock = min(limits)
            self._lease.set_clock("attempt", time.monotonic() + limit, lambda: self._expire(clock))
        self.hear()

    def hear(self) -> None:
        """The body is alive: its silence is counted anew."""
        silence = self._options.heartbeat_timeout
        if silence is not None:
            self._lease.set_clock("heartbeat", time.monotonic() + silence, lambda: self._expire("heartbeat_timeout"))

    def stop(self) -> None:
        """The body is over."""
        self._lease.clear_clock("attempt")
        self._lease.clear_clock("heartbeat")
