"""Messages: waits for a signal, and for an operator."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django_durable.authoring.operations.base import Duration, operation
from django_durable.authoring.operations.waiting import Waiting
from django_durable.engine.journal import Entry
from django_durable.engine.transitions import leave
from django_durable.errors import SignalTimeout
from django_durable.models.columns import check_name
from django_durable.payloads import decode


class Messages(Waiting):
    """``ctx.wait_for_signal``, ``ctx.breakpoint``."""

    @operation
    def wait_for_signal(self, name: str, timeout: Duration | None = None, until: datetime | None = None) -> Any:
        """The next unread signal of this name, in order of acceptance, also one from before.

        Raises ``SignalTimeout`` at the deadline, which is stored once when the wait is first reached.
        """
        check_name(name, "signal name")
        _position, encoded = self._receive(
            "signal",
            name,
            timeout,
            until,
            lambda position: SignalTimeout(f"no signal {name!r} arrived in time", position=position),
            lambda _position: [f"signal:{name}"],
        )
        return decode(encoded)

    @operation
    def breakpoint(self, label: str = "") -> None:
        """Pause until an operator's ``resume``."""
        check_name(label, "label", empty=True)
        session = self._session
        position, record = session.enter("breakpoint", label)
        if record is not None and record.status == "completed":
            return
        pages = session.pages()
        if record is None:
            changes = {"status": "pending", "started_at": session.claim.now()}
            pages = session.pages_with(Entry(None, position, "breakpoint", label, changes))
        session.leave(lambda p: leave.pause_here(session.claim, p), pages)
