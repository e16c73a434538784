"""TurnState: what one turn knows of its execution, and how it ends without another write."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from django_durable.engine.claimed import Claimed
from django_durable.engine.journal import (
    Record,
    load,
)
from django_durable.engine.lease_state import Lease
from django_durable.engine.markers import past_markers
from django_durable.engine.ownership import (
    Abandoned,
    Refusal,
    Suspended,
    explain_refusal,
)
from django_durable.engine.persistence import persistently
from django_durable.engine.undos import FINAL, FIRST, UndoList, note_mark
from django_durable.errors import CodecUnavailable, DurableError, NonDeterminismError
from django_durable.models.checkpoint import UNDO, WHOLE

T = TypeVar("T")
logger = logging.getLogger("django_durable")


class TurnState:
    """The claim, the journal as it was read, what is in hand. See ``Session``."""

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
        # A payload codec could not be reached: the turn is over, and is taken up again later.
        self.outage: CodecUnavailable | None = None
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

    def stop_body(self) -> NoReturn:
        """End the body here without leaving the execution: in undo mode, where its history ends."""
        self.suspended = True
        raise Suspended

    def await_codec(self, error: CodecUnavailable) -> NoReturn:
        """End the turn without an outcome: a payload codec is away. ``hand_over`` follows its body."""
        self.outage = error
        self.suspended = True
        raise Suspended

    def refuse(self, error: NonDeterminismError) -> NoReturn:
        """Stop: the code does not match the history. The execution will be blocked."""
        self.broken = error
        raise error

    def refuse_write(self) -> NoReturn:
        """End the turn after a write that the fence refused."""
        self.give_up(self.explain())

    def give_up(self, why: Refusal) -> NoReturn:
        """End the turn after a refused write; where the run is to end, ``hand_over`` follows its body."""
        if why is Refusal.ENDING:
            self.ending = self.suspended = True
            raise Abandoned(why.value)
        self.abandon(why.value)

    def abandon(self, why: str) -> NoReturn:
        """End the turn without another write."""
        logger.info("turn of execution %s stopped: %s", self.claim.id, why)
        self.suspended = True
        self.lease.lost = True
        raise Abandoned(why)

    def explain(self, position: int | None = None, *, item: int = WHOLE) -> Refusal:
        """Why a write was refused; asked again through lost connections, like the write itself."""
        return self.persistently(lambda: explain_refusal(self.claim, position, item=item))

    def persistently(self, attempt: Callable[[], T]) -> T:
        """Repeat a statement for as long as the lease may hold."""
        return persistently(self, attempt)
