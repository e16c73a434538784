"""Session: one turn's view of its execution, the one seam between what a user writes with and the engine.

It hands out positions, answers from the journal, appends under the fence and knows when to stop. Nothing above
it writes checkpoints; nothing below it knows of workflows.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from django_durable.conf import config
from django_durable.engine import mismatch
from django_durable.engine.claimed import Claimed
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
from django_durable.engine.persistence import persistently
from django_durable.engine.transitions import leave
from django_durable.engine.transitions.expire import expire_attempt
from django_durable.engine.transitions.leave import Pages, merge_tags
from django_durable.engine.transitions.undo import begin_asked
from django_durable.engine.transitions.wait import PLAIN, Terms, Waited, read_outcome, wait_for_messages
from django_durable.engine.undos import FINAL, FIRST, UndoList, note_mark
from django_durable.errors import DurableError, NonDeterminismError
from django_durable.models.checkpoint import UNDO, WHOLE
from django_durable.sql import Sql, build, execute, run_guarded

T = TypeVar("T")
logger = logging.getLogger("django_durable")


class Session:
    """One turn. Not thread-safe: a call from another thread than the turn's ends in ``blocked``."""

    waits_for_retry = True
    """Short delays before a next attempt are waited out under the lease."""

    def __init__(self, claim: Claimed, lease: Lease, stop: threading.Event | None = None) -> None:
        self.claim = claim
        self.lease = lease
        self.stop = stop or threading.Event()
        self.history: dict[int, Record] = {}
        self.items: dict[int, dict[int, Record]] = {}
        # Undo steps by the position of their registration, and what the body registered there in this turn.
        self.undone: dict[int, Record] = {}
        cut = claim.row["fork_position"]
        self.undos = UndoList(since=FIRST if cut is None else cut)
        self.registered: dict[int, Any] = {}
        # In undo mode the body is only followed, as far as its history goes; undo steps alone are run.
        self.undoing: bool = claim.row["status"] == "compensating"
        # The run is to end, and this turn has to stop so that its undo steps may begin.
        self.ending = False
        self.position = 0
        self.suspended = False
        self.broken: DurableError | None = None
        # Asked of a turn before this one, which did not live to see it.
        self.pause_asked = claim.row["pause_requested_at"] is not None
        self._in_hand: list[dict[str, Any]] = []
        self._recorded = 0
        self._thread = threading.get_ident()
        claim.undoing = lease.undoing = self.undoing

    def load(self) -> None:
        """Read the journal, once, after the claim's commit."""
        self.history, self.items, self.undone = {}, {}, {}
        self.learn(self.persistently(lambda: load(self.claim.using, self.claim.id)))
        self._recorded = max(self.history, default=-1) + 1

    def undos_of_history(self) -> UndoList:
        """Which undo steps the run has by its journal, as far as that was loaded."""
        undos = UndoList(outcomes=self.undos.outcomes, since=self.undos.since)
        for position in sorted(self.history):
            record = self.history[position]
            note_mark(undos, position, record.kind, record.name, record.encoded_output)
        return undos

    def learn(self, records: Iterable[Record]) -> None:
        """Take records as they are in the database now."""
        for record in records:
            if record.item == WHOLE:
                self.history[record.position] = record
                if record.position < 0:
                    self.undos.register(record.position)
            elif record.item == UNDO:
                self.undone[record.position] = record
                if record.status in FINAL:
                    self.undos.settle(record.position, record.status)
            else:
                self.items.setdefault(record.position, {})[record.item] = record

    @property
    def replaying(self) -> bool:
        """Whether the next position has a record."""
        return past_markers(self.history, self.position) in self.history

    @property
    def recorded_ahead(self) -> bool:
        """Whether the run has been past this position before, markers aside."""
        return past_markers(self.history, self.position) < self._recorded

    @property
    def only_follows(self) -> bool:
        """Whether the body is only followed as far as its history goes: in undo mode, or by a test."""
        return self.undoing

    @property
    def has_elsewhere(self) -> bool:
        """Whether something that the run has started elsewhere may still be under way."""
        return any(
            record.status == "pending" and (record.kind in ("child", "map") or record.queued_at is not None)
            for record in self.history.values()
        )

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

    def stop_body(self) -> NoReturn:
        """End the body here without leaving the execution: in undo mode, where its history ends."""
        self.suspended = True
        raise Suspended

    def refuse(self, error: NonDeterminismError) -> NoReturn:
        """Stop: the code does not match the history. The execution will be blocked."""
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

    # -- writing ---------------------------------------------------------------------------------------------

    def keep(self, position: int, kind: str, name: str, output: str | None, **more: Any) -> None:
        """Keep an instant value in hand; it is appended with the next write, before the next body starts."""
        self._keep(row_for(self.claim, position, kind, name, "completed", encoded_output=output, **more))

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

    def append(
        self, position: int, kind: str, name: str, status: str, *, beside: Sequence[Sql] = (), **more: Any
    ) -> None:
        """Append one checkpoint, what is in hand before it, in one statement; ``beside`` it, or neither."""
        self._append([row_for(self.claim, position, kind, name, status, **more)], beside)

    def amend(self, position: int, changes: Mapping[str, Any], *, item: int = WHOLE) -> None:
        """Change the pending checkpoint at a position."""
        self._write(lambda: fenced_update(self.claim, position, changes, item=item), position, expected=1, item=item)

    def record(
        self,
        record: Record | None,
        position: int,
        kind: str,
        name: str,
        changes: Mapping[str, Any],
        *,
        item: int = WHOLE,
    ) -> None:
        """Append a checkpoint, or change it where a pending one is there already."""
        if record is None:
            more = {key: change for key, change in changes.items() if key != "status"}
            self.append(position, kind, name, changes["status"], item=item, **more)
        else:
            self.flush()
            self.amend(position, changes, item=item)

    def pages(self) -> Pages:
        """What is in hand, to be written with a transition."""
        return Pages(rows=tuple(self._in_hand))

    def pages_with(
        self,
        record: Record | None,
        position: int,
        kind: str,
        name: str,
        changes: Mapping[str, Any],
        *,
        item: int = WHOLE,
    ) -> Pages:
        """What is in hand, and one more checkpoint, new or changed."""
        if record is not None:
            return Pages(rows=tuple(self._in_hand), position=position, changes=changes, item=item)
        more = {key: change for key, change in changes.items() if key != "status"}
        row = row_for(self.claim, position, kind, name, changes["status"], item=item, **more)
        return Pages(rows=(*self._in_hand, row))

    def written(self) -> None:
        """What was in hand has been written with something else."""
        self._in_hand.clear()

    def _append(self, rows: list[dict[str, Any]], beside: Sequence[Sql] = ()) -> None:
        rows = [*self._in_hand, *rows]
        last = rows[-1]
        self._write(
            lambda: fenced_insert(self.claim, rows),
            last["position"],
            expected=len(rows),
            item=last["item"],
            beside=beside,
        )
        self._in_hand.clear()

    def _write(
        self,
        statement: Callable[[], Sql],
        position: int,
        *,
        expected: int,
        item: int = WHOLE,
        beside: Sequence[Sql] = (),
    ) -> None:
        written = self.persistently(lambda: run_guarded(self.claim.using, statement(), beside))
        if len(written) == expected:
            self.pause_asked = self.pause_asked or any(bool(row[0]) for row in written)
            return
        why = self.explain(position, item=item)
        if why is Refusal.MINE:
            self.pause_asked = self.persistently(lambda: pause_is_asked(self.claim))
            return
        if why is Refusal.FOREIGN:
            self.refuse(mismatch.other_turn(position))
        self.give_up(why)

    def explain(self, position: int | None = None, *, item: int = WHOLE) -> Refusal:
        """Why a write was refused; asked again through lost connections, like the write itself."""
        return self.persistently(lambda: explain_refusal(self.claim, position, item=item))

    def wait(
        self,
        record: Record | None,
        position: int,
        kind: str,
        name: str,
        channels: Sequence[str],
        until: datetime | None,
        timed_out_error: str,
        terms: Terms = PLAIN,
    ) -> Letter:
        """Take the oldest unread message of these channels; else suspend.

        The letter's ``payload`` and ``error`` are what is recorded: once the time is over, ``timed_out_error``.
        """

        def pages(changes: Mapping[str, Any]) -> Pages:
            started = {} if record is not None else {"started_at": self.claim.now(), "wake_at": until}
            return self.pages_with(record, position, kind, name, {**started, **changes})

        tried = False

        def attempt() -> Waited:
            nonlocal tried
            found = read_outcome(self.claim, position) if tried else None
            tried = True
            if found is None:
                for source in terms.sources:
                    source.register(self.claim, position)
            return found or wait_for_messages(
                self.claim,
                pages,
                position=position,
                channels=channels,
                until=until,
                timed_out_error=timed_out_error,
                terms=terms,
            )

        waited = self.persistently(attempt)
        if waited.refused:
            self.give_up(self.explain(position))
        if waited.suspended:
            self.suspended = True
            raise Suspended
        self._in_hand.clear()
        return waited.letter or Letter(0, "", "null", self.claim.read_at, timed_out_error)

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
            self.give_up(self.explain(position))
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
            self.give_up(self.explain())
        self.suspended = True
        raise Suspended

    def try_again_at(
        self,
        due_at: datetime,
        record: Record | None,
        position: int,
        kind: str,
        name: str,
        changes: Mapping[str, Any],
        *,
        item: int = WHOLE,
    ) -> NoReturn:
        """Record a failed attempt and suspend until the next one is due."""
        pages = self.pages_with(record, position, kind, name, changes, item=item)
        self.leave(lambda p: leave.suspend(self.claim, p, wake_at=due_at), pages)

    def rest_until(self, due_at: datetime) -> NoReturn:
        """Suspend until an attempt is due that is recorded already."""
        self.leave(lambda p: leave.suspend(self.claim, p, wake_at=due_at))

    def expire(
        self,
        due_at: datetime | None,
        record: Record | None,
        position: int,
        kind: str,
        name: str,
        changes: Mapping[str, Any],
        *,
        item: int = WHOLE,
    ) -> bool:
        """Record, from another thread, that an attempt overran its time; whether the turn has lost its execution.

        Where the run is to end, its undo steps need not wait for a body that stands still.
        """
        pages = self.pages_with(record, position, kind, name, changes, item=item)
        return expire_attempt(self.claim, pages, due_at) or begin_asked(self.claim)

    def refuse_write(self) -> NoReturn:
        """End the turn after a write that the fence refused."""
        self.give_up(self.explain())

    def give_up(self, why: Refusal) -> NoReturn:
        """End the turn after a refused write; where the run is to end, ``hand_over`` follows its body."""
        if why is Refusal.ENDING:
            self.ending = self.suspended = True
            raise Abandoned(why.value)
        self.abandon(why.value)

    def hand_over(self) -> None:
        """The body has been left: what this turn was asked to make room for, its undo steps, may begin."""
        if self.ending and not self.lease.lost:
            self.persistently(lambda: begin_asked(self.claim))

    @contextmanager
    def undo_rights(self) -> Iterator[None]:
        """Run undo steps within this turn: a cancel does not stop them, and a pause waits until they are done."""
        before = self.claim.undoing
        self.claim.undoing = self.lease.undoing = True
        try:
            yield
        finally:
            self.claim.undoing = self.lease.undoing = before

    def abandon(self, why: str) -> NoReturn:
        """End the turn without another write."""
        logger.info("turn of execution %s stopped: %s", self.claim.id, why)
        self.suspended = True
        self.lease.lost = True
        raise Abandoned(why)

    def persistently(self, attempt: Callable[[], T]) -> T:
        """Repeat a statement for as long as the lease may hold."""
        return persistently(self, attempt)

    def wait_under_lease(self, until: datetime) -> bool:
        """Wait for a short time without giving the execution up; ``False`` if the turn should stop first."""
        while True:
            remaining = (until - self.claim.now()).total_seconds()
            if remaining <= 0:
                return True
            if self.stop.wait(min(remaining, 0.2)) or self.lease.cancelled or not self.lease.held:
                return False
