"""TurnLeaving: how a turn gives its execution up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import NoReturn, TypeVar

from django_durable.engine.journal import Entry
from django_durable.engine.ownership import Suspended
from django_durable.engine.persistence import CODEC_PAUSE_SECONDS, last_word
from django_durable.engine.transitions import leave
from django_durable.engine.transitions.expire import expire_attempt
from django_durable.engine.transitions.leave import Pages
from django_durable.engine.transitions.undo import begin_asked
from django_durable.engine.turn_writing import TurnWriting
from django_durable.quiet import report

T = TypeVar("T")


class TurnLeaving(TurnWriting):
    """Each way is a committed transition. See ``Session``."""

    def leave(self, transition: Callable[[Pages], bool], pages: Pages | None = None) -> NoReturn:
        """End the turn by a committed transition that gives the execution up."""
        written = pages if pages is not None else self.pages()
        if not self.persistently(lambda: transition(written)):
            self.give_up(self.explain())
        self.suspended = True
        raise Suspended

    def try_again_at(self, due_at: datetime, entry: Entry) -> NoReturn:
        """Record a failed attempt and suspend until the next one is due."""
        pages = self.pages_with(entry)
        self.leave(lambda p: leave.suspend(self.claim, p, wake_at=due_at), pages)

    def rest_until(self, due_at: datetime) -> NoReturn:
        """Suspend until an attempt is due that is recorded already."""
        self.leave(lambda p: leave.suspend(self.claim, p, wake_at=due_at))

    def expire(self, due_at: datetime | None, entry: Entry) -> bool:
        """Record, from another thread, that an attempt overran its time; whether the turn has lost its execution.

        Where the run is to end, its undo steps need not wait for a body that stands still.
        """
        return expire_attempt(self.claim, self.pages_with(entry), entry, due_at) or begin_asked(self.claim)

    def hand_over(self) -> None:
        """The body has been left: what this turn was asked to make room for may begin, its undo steps, or a pause."""
        if self.lease.lost:
            return
        if self.ending:
            last_word(self, lambda: begin_asked(self.claim))
        elif self.outage is not None:
            report(self.outage, "a payload codec cannot be reached; execution %s is tried again later", self.claim.id)
            pages = self.pages()
            last_word(self, lambda: leave.release(self.claim, pages, delay=CODEC_PAUSE_SECONDS))

    @contextmanager
    def undo_rights(self) -> Iterator[None]:
        """Run undo steps within this turn: a cancel does not stop them, and a pause waits until they are done."""
        before = self.claim.undoing
        self.claim.undoing = self.lease.undoing = True
        try:
            yield
        finally:
            self.claim.undoing = self.lease.undoing = before

    def wait_under_lease(self, until: datetime) -> bool:
        """Wait for a short time without giving the execution up; ``False`` if the turn should stop first."""
        while True:
            remaining = (until - self.claim.now()).total_seconds()
            if remaining <= 0:
                return True
            if self.stop.wait(min(remaining, 0.2)) or self.lease.cancelled or not self.lease.held:
                return False
