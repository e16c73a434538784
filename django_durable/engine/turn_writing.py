"""TurnWriting: how a turn appends to its journal, under the fence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django_durable.engine import mismatch
from django_durable.engine.journal import (
    EXECUTION,
    Entry,
    Record,
    fence,
    fenced_insert,
    fenced_update,
    row_for,
)
from django_durable.engine.messages import Letter
from django_durable.engine.ownership import (
    Refusal,
    Suspended,
    explain_refusal,
    pause_is_asked,
)
from django_durable.engine.transitions.leave import Pages, merge_tags
from django_durable.engine.transitions.wait import PLAIN, Terms, Waited, read_outcome, wait_for_messages
from django_durable.engine.turn_state import TurnState
from django_durable.models.checkpoint import WHOLE
from django_durable.sql import Sql, build, execute, run_guarded

T = TypeVar("T")


class TurnWriting(TurnState):
    """Checkpoints, one by one or with what is in hand. See ``Session``."""

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

    def record(self, entry: Entry) -> None:
        """Append a checkpoint, or change it where a pending one is there already."""
        if entry.record is None:
            self._append([self._new(entry)])
        else:
            self.flush()
            self.amend(entry.position, entry.changes, item=entry.item)

    def pages(self) -> Pages:
        """What is in hand, to be written with a transition."""
        return Pages(rows=tuple(self._in_hand))

    def pages_with(self, entry: Entry) -> Pages:
        """What is in hand, and one more checkpoint, new or changed."""
        if entry.record is not None:
            rows = tuple(self._in_hand)
            return Pages(rows=rows, position=entry.position, changes=entry.changes, item=entry.item)
        return Pages(rows=(*self._in_hand, self._new(entry)))

    def _new(self, entry: Entry) -> dict[str, Any]:
        status = entry.changes["status"]
        return row_for(self.claim, entry.position, entry.kind, entry.name, status, item=entry.item, **entry.more)

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
            return self.pages_with(Entry(record, position, kind, name, {**started, **changes}))

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
