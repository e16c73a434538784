"""Session: one turn's view of its execution, the one seam between what a user writes with and the engine.

It hands out positions, answers from the journal, appends under the fence and knows when to stop. Nothing above
it writes checkpoints; nothing below it knows of workflows.
"""

from __future__ import annotations

import logging
import threading

from django_durable.conf import config
from django_durable.engine import mismatch
from django_durable.engine.derived import DERIVED
from django_durable.engine.journal import (
    Record,
)
from django_durable.engine.markers import MARKER, behind_marker, past_markers
from django_durable.engine.ownership import (
    Refusal,
    Suspended,
)
from django_durable.engine.transitions import leave
from django_durable.engine.turn_leaving import TurnLeaving
from django_durable.errors import DurableError

logger = logging.getLogger("django_durable")


class Session(TurnLeaving):
    """One turn. Not thread-safe: a call from another thread than the turn's ends in ``blocked``."""

    def check_usable(self) -> None:
        """Refuse an operation from another thread, after a suspension, or once the turn is broken."""
        if threading.get_ident() != self._thread:
            self.broken = mismatch.other_thread()
            raise self.broken
        if self.suspended:
            raise Suspended
        if self.broken is not None:
            raise self.broken

    def enter(self, kind: str, name: str) -> tuple[int, Record | None]:
        """Take the next position for an operation; its record, where one exists.

        Raises ``NonDeterminismError`` where the record is of another kind or name, before any effect, and stops
        the turn where a pause, a shutdown or a lost lease says so.
        """
        self.check_usable()
        position = past_markers(self.history, self.position)
        record = self.history.get(position)
        if record is None:
            if self.undoing and position >= self._recorded:
                self.stop_body()
            self._stop_at_boundary(position)
            if position < self._recorded:
                self.refuse(mismatch.derived_value(position, kind, name))
        elif record.kind == DERIVED:
            self.refuse(mismatch.derived_value(position, kind, name))
        elif (record.kind, record.name) != (kind, name):
            self.refuse(mismatch.other_operation(record, kind, name))
        elif self.undoing and not (record.is_over or record.is_elsewhere):
            self.stop_body()
        self.position = position + 1
        return position, record

    def pass_marker(self, change_id: str) -> None:
        """Count the marker that the code asks for, as the turn did that left it."""
        self.position = behind_marker(self.history, self.position, change_id)

    def enter_unwritten(self, kind: str) -> tuple[int, Record | None]:
        """Take the next position for a value derived from the seed; its record in a fork, nothing elsewhere."""
        self.check_usable()
        position = past_markers(self.history, self.position)
        record = self.history.get(position)
        if record is not None and record.kind != DERIVED:
            self.refuse(mismatch.other_operation(record, kind, ""))
        if self.undoing and position >= self._recorded:
            self.stop_body()
        self.position = position + 1
        return position, record

    def check_all_used(self) -> None:
        """Refuse an end that leaves records unread: the code no longer asks for them."""
        record = self.first_unread()
        if record is not None:
            self.broken = mismatch.early_end(record)
            raise self.broken

    def first_unread(self) -> Record | None:
        """The first record that the code has not asked for and has to; markers may stay unread."""
        if self.position >= self._recorded:
            return None
        ahead = (r for p, r in self.history.items() if p >= self.position and r.kind != MARKER)
        return min(ahead, key=lambda record: record.position, default=None)

    def _stop_at_boundary(self, position: int) -> None:
        limit = config().max_positions
        if position >= limit:
            self.broken = DurableError(
                f"the run has reached {limit} positions; raise DURABLE['MAX_POSITIONS'] and resume it, and split"
                " the work into several runs"
            )
            raise self.broken
        if position == limit * 4 // 5:
            logger.warning("execution %s has taken %d of %d positions", self.claim.id, position, limit)
        if self.pause_asked:
            self.leave(lambda pages: leave.pause_here(self.claim, pages))
        if self.stop.is_set():
            self.leave(lambda pages: leave.release(self.claim, pages))

    def before_body(self) -> None:
        """What must hold before user code with effects starts: values are recorded, the lease is held."""
        self.flush()
        if self.pause_asked and not self.claim.undoing:
            self.position -= 1
            self.leave(lambda pages: leave.pause_here(self.claim, pages))
        if self.stop.is_set():
            self.position -= 1
            self.leave(lambda pages: leave.release(self.claim, pages))
        if self.lease.lost or not self.lease.held:
            self.abandon("the lease was lost, or the execution cancelled")
        if self.lease.cancelled:
            self.give_up(Refusal.ENDING)
