"""Session: one turn's view of its execution, the one seam between what a user writes with and the engine.

It hands out positions, answers from the journal, appends under the fence and knows when to stop. Nothing above
it writes checkpoints; nothing below it knows of workflows.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from django.db import InterfaceError, OperationalError, connections

from django_durable.conf import config
from django_durable.database_errors import is_contention, is_disconnect
from django_durable.engine import mismatch
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import drop_broken_connection
from django_durable.engine.derived import DERIVED
from django_durable.engine.journal import (
    EXECUTION,
    Record,
    fence,
    fenced_insert,
    fenced_update,
    load,
    row_for,
)
from django_durable.engine.lease_state import Lease
from django_durable.engine.markers import MARKER, past_markers
from django_durable.engine.messages import Letter
from django_durable.engine.ownership import (
    Abandoned,
    Refusal,
    Suspended,
    explain_refusal,
    pause_is_asked,
)
from django_durable.engine.transitions import leave
from django_durable.engine.transitions.leave import Pages, merge_tags
from django_durable.engine.transitions.wait import Waited, read_outcome, wait_for_messages
from django_durable.errors import DurableError, NonDeterminismError
from django_durable.sql import Sql, build, execute, fetch

T = TypeVar("T")
logger = logging.getLogger("django_durable")


class Session:
    """One turn. Not thread-safe: a call from another thread than the turn's ends in ``blocked``."""

    def __init__(self, claim: Claimed, lease: Lease, stop: threading.Event | None = None) -> None:
        self.claim = claim
        self.lease = lease
        self.stop = stop or threading.Event()
        self.history: dict[int, Record] = {}
        self.position = 0
        self.suspended = False
        self.broken: DurableError | None = None
        # Asked of a turn before this one, which did not live to see it.
        self.pause_asked = claim.row["pause_requested_at"] is not None
        self._in_hand: list[dict[str, Any]] = []
        self._recorded = 0
        self._thread = threading.get_ident()

    def load(self) -> None:
        """Read the journal, once, after the claim's commit."""
        self.history = self.persistently(lambda: load(self.claim.using, self.claim.id))
        self._recorded = max(self.history, default=-1) + 1

    @property
    def replaying(self) -> bool:
        """Whether the next position has a record."""
        return past_markers(self.history, self.position) in self.history

    @property
    def recorded_ahead(self) -> bool:
        """Whether the run has been past this position before, markers aside."""
        return past_markers(self.history, self.position) < self._recorded

    # -- positions -------------------------------------------------------------------------------------------

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
            self._stop_at_boundary(position)
            if position < self._recorded:
                self._refuse(mismatch.derived_value(position, kind, name))
        elif record.kind == DERIVED:
            self._refuse(mismatch.derived_value(position, kind, name))
        elif (record.kind, record.name) != (kind, name):
            self._refuse(mismatch.other_operation(record, kind, name))
        self.position = position + 1
        return position, record

    def enter_unwritten(self, kind: str) -> tuple[int, Record | None]:
        """Take the next position for a value derived from the seed; its record in a fork, nothing elsewhere."""
        self.check_usable()
        position = past_markers(self.history, self.position)
        record = self.history.get(position)
        if record is not None and record.kind != DERIVED:
            self._refuse(mismatch.other_operation(record, kind, ""))
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

    def _refuse(self, error: NonDeterminismError) -> NoReturn:
        self.broken = error
        raise error

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
        if self.pause_asked:
            self.position -= 1
            self.leave(lambda pages: leave.pause_here(self.claim, pages))
        if self.stop.is_set():
            self.position -= 1
            self.leave(lambda pages: leave.release(self.claim, pages))
        if self.lease.cancelled or not self.lease.held:
            self.abandon("the lease was lost, or the execution cancelled")

    # -- writing ---------------------------------------------------------------------------------------------

    def keep(self, position: int, kind: str, name: str, output: str) -> None:
        """Keep an instant value in hand; it is appended with the next write, before the next body starts."""
        self._keep(row_for(self.claim, position, kind, name, "completed", encoded_output=output))

    def keep_failed(self, position: int, kind: str, name: str, error: str) -> None:
        """The same for an instant refusal."""
        self._keep(row_for(self.claim, position, kind, name, "failed", encoded_error=error))

    def _keep(self, row: dict[str, Any]) -> None:
        row["started_at"] = row["finished_at"] = self.claim.now()
        self._in_hand.append(row)

    def flush(self) -> None:
        """Append what is in hand."""
        if self._in_hand:
            self._append([])

    def append(self, position: int, kind: str, name: str, status: str, **more: Any) -> None:
        """Append one checkpoint, what is in hand before it, in one statement."""
        self._append([row_for(self.claim, position, kind, name, status, **more)])

    def amend(self, position: int, changes: Mapping[str, Any]) -> None:
        """Change the pending checkpoint at a position."""
        self._write(lambda: fenced_update(self.claim, position, changes), position, expected=1)

    def record(self, record: Record | None, position: int, kind: str, name: str, changes: Mapping[str, Any]) -> None:
        """Append a checkpoint, or change it where a pending one is there already."""
        if record is None:
            more = {key: item for key, item in changes.items() if key != "status"}
            self.append(position, kind, name, changes["status"], **more)
        else:
            self.flush()
            self.amend(position, changes)

    def pages(self) -> Pages:
        """What is in hand, to be written with a transition."""
        return Pages(rows=tuple(self._in_hand))

    def pages_with(
        self, record: Record | None, position: int, kind: str, name: str, changes: Mapping[str, Any]
    ) -> Pages:
        """What is in hand, and one more checkpoint, new or changed."""
        if record is not None:
            return Pages(rows=tuple(self._in_hand), position=position, changes=changes)
        more = {key: item for key, item in changes.items() if key != "status"}
        row = row_for(self.claim, position, kind, name, changes["status"], **more)
        return Pages(rows=(*self._in_hand, row))

    def _append(self, rows: list[dict[str, Any]]) -> None:
        rows = [*self._in_hand, *rows]
        self._write(lambda: fenced_insert(self.claim, rows), rows[-1]["position"], expected=len(rows))
        self._in_hand.clear()

    def _write(self, statement: Callable[[], Sql], position: int, *, expected: int) -> None:
        written = self.persistently(lambda: fetch(self.claim.using, statement()))
        if len(written) == expected:
            self.pause_asked = self.pause_asked or any(bool(row[0]) for row in written)
            return
        why = self._explain(position)
        if why is Refusal.MINE:
            self.pause_asked = self.persistently(lambda: pause_is_asked(self.claim))
            return
        if why is Refusal.FOREIGN:
            self._refuse(mismatch.other_turn(position))
        self.abandon(why.value)

    def _explain(self, position: int | None = None) -> Refusal:
        """Why a write was refused; asked again through lost connections, like the write itself."""
        return self.persistently(lambda: explain_refusal(self.claim, position))

    def wait(
        self,
        record: Record | None,
        position: int,
        kind: str,
        name: str,
        channels: Sequence[str],
        until: datetime | None,
        timed_out_error: str,
    ) -> Letter | None:
        """Take the oldest unread message of these channels; ``None`` once the time is over; else suspend."""

        def pages(changes: Mapping[str, Any]) -> Pages:
            started = {} if record is not None else {"started_at": self.claim.now(), "wake_at": until}
            return self.pages_with(record, position, kind, name, {**started, **changes})

        tried = False

        def attempt() -> Waited:
            nonlocal tried
            found = read_outcome(self.claim, position) if tried else None
            tried = True
            return found or wait_for_messages(
                self.claim,
                pages,
                position=position,
                channels=channels,
                until=until,
                timed_out_error=timed_out_error,
            )

        waited = self.persistently(attempt)
        if waited.refused:
            self.abandon(self._explain(position).value)
        if waited.suspended:
            self.suspended = True
            raise Suspended
        self._in_hand.clear()
        return waited.letter

    def set_tags(self, position: int, tags: Mapping[str, Any], encoded: str) -> None:
        """Merge tags into the execution's row, with what is in hand, in one batch."""
        self.keep(position, "tags", "", encoded)
        rows = tuple(self._in_hand)
        tried = False

        def attempt() -> bool:
            nonlocal tried
            if tried and explain_refusal(self.claim, position) is Refusal.MINE:
                return True
            tried = True
            return merge_tags(self.claim, Pages(rows=rows), tags)

        if not self.persistently(attempt):
            self.abandon(self._explain(position).value)
        self._in_hand.clear()

    def touch(self) -> bool:
        """Write the execution's row without changing it, under the fence: SQLite's write lock, and a look."""
        statement = build(f"UPDATE {EXECUTION} AS e SET status = e.status WHERE {{fence}}", fence=fence(self.claim))
        return bool(execute(self.claim.using, statement))

    # -- ending ----------------------------------------------------------------------------------------------

    def leave(self, transition: Callable[[Pages], bool], pages: Pages | None = None) -> NoReturn:
        """End the turn by a committed transition that gives the execution up."""
        written = pages if pages is not None else self.pages()
        if not self.persistently(lambda: transition(written)):
            self.abandon(self._explain().value)
        self.suspended = True
        raise Suspended

    def abandon(self, why: str) -> NoReturn:
        """End the turn without another write."""
        logger.info("turn of execution %s stopped: %s", self.claim.id, why)
        self.suspended = True
        self.lease.lost = True
        raise Abandoned(why)

    def persistently(self, attempt: Callable[[], T]) -> T:
        """Repeat a statement through lost connections and lock trouble for as long as the lease may hold.

        A statement that had been committed although an error came back is recognised by its refusal.
        """
        number = 0
        while True:
            try:
                return attempt()
            except (OperationalError, InterfaceError) as error:
                if connections[self.claim.using].in_atomic_block:
                    raise
                if not (is_contention(error) or is_disconnect(error)):
                    raise
                if not self.lease.held:
                    self.abandon("the database could not be reached before the lease ended")
                number += 1
                time.sleep(random.uniform(0, min(1.0, 0.02 * 2**number)))
                drop_broken_connection(self.claim.using)

    def wait_under_lease(self, until: datetime) -> bool:
        """Wait for a short time without giving the execution up; ``False`` if the turn should stop first."""
        while True:
            remaining = (until - self.claim.now()).total_seconds()
            if remaining <= 0:
                return True
            if self.stop.wait(min(remaining, 0.2)) or self.lease.cancelled or not self.lease.held:
                return False
