"""CrashedTurn: a process that is gone after a body and before its checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn, Self
from unittest import mock

from django_durable.authoring.place import current
from django_durable.engine.journal import Entry, Record
from django_durable.engine.messages import Letter
from django_durable.engine.session import Session
from django_durable.engine.transitions.leave import Pages
from django_durable.models.checkpoint import UNDO, WHOLE
from django_durable.runtime import turn
from django_durable.sql import Sql


class CrashedTurn:
    """Kills one turn, the first that is about to record this position; ``happened`` says whether it did.

    Nothing of that turn is written from there on. The run's end is recorded behind its last position. Armed from
    its making until it happened, or until ``end()``, which the end of a ``with`` block or of the test calls.
    ``undo``: it is about to record how the undo step went that was registered at this position.
    """

    def __init__(self, at_position: int, *, undo: bool = False) -> None:
        if isinstance(at_position, bool) or not isinstance(at_position, int) or at_position < 0:
            raise ValueError(f"at_position must be an int of at least 0, not {at_position!r}")
        self.at_position = at_position
        self.undo = undo
        self.happened = False
        self.armed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.end()

    def end(self) -> None:
        """Crash nothing any more."""
        self.armed = False

    def strike(self) -> None:
        """Once."""
        self.happened = True
        self.armed = False


@contextmanager
def doomed(crashes: Sequence[CrashedTurn]) -> Iterator[None]:
    """Let the turns of this block meet these crashes."""
    if not any(crash.armed for crash in crashes):
        yield
        return
    with mock.patch.object(turn, "Session", partial(DoomedSession, crashes)):
        yield


class DoomedSession(Session):
    """A turn's view of its execution that ends at every write which one of the crashes lies in wait for."""

    def __init__(self, crashes: Sequence[CrashedTurn], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._crashes = crashes
        self._announcing = False
        self._steps: set[int] = set()
        self._bodies: set[int] = set()
        self._undo_body_ran = False

    def _die_before(self, positions: Sequence[int]) -> None:
        if self._announcing:
            return
        # What is written of a step before a body has run is how an earlier attempt ended.
        last = max((p for p in positions if p not in self._steps or p in self._bodies), default=-1)
        for crash in self._crashes:
            if crash.armed and not crash.undo and last >= crash.at_position:
                self._die(crash)

    def _die_before_undo(self, position: int) -> None:
        if self._announcing or not self._undo_body_ran:
            return
        self._undo_body_ran = False
        for crash in self._crashes:
            if crash.armed and crash.undo and crash.at_position == position:
                self._die(crash)

    def _die(self, crash: CrashedTurn) -> NoReturn:
        crash.strike()
        self.abandon(f"crash_turn(at_position={crash.at_position})")

    def enter(self, kind: str, name: str) -> tuple[int, Record | None]:
        position, record = super().enter(kind, name)
        if kind == "step":
            self._steps.add(position)
        return position, record

    def before_body(self) -> None:
        super().before_body()
        if self.claim.undoing:
            self._undo_body_ran = True
        else:
            self._bodies.add(self.position - 1)

    def record(self, entry: Entry) -> None:
        # An at-most-once body is announced before it starts; the crash comes after it.
        announces = entry.changes["status"] == "pending" and "encoded_error" not in entry.changes
        self._announcing = announces and entry.kind in ("step", "undo")
        try:
            super().record(entry)
        finally:
            self._announcing = False

    def amend(self, position: int, changes: Mapping[str, Any], *, item: int = WHOLE) -> None:
        self._die_before_rows([{"position": position, "item": item}])
        super().amend(position, changes, item=item)

    def _append(self, rows: list[dict[str, Any]], beside: Sequence[Sql] = ()) -> None:
        self._die_before_rows([*self._in_hand, *rows])
        super()._append(rows, beside)

    def _die_before_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._die_before([row["position"] for row in rows if row["item"] == WHOLE])
        for row in rows:
            if row["item"] == UNDO:
                self._die_before_undo(row["position"])

    def wait(self, record: Record | None, position: int, *arguments: Any, **options: Any) -> Letter:
        self._die_before([position])
        return super().wait(record, position, *arguments, **options)

    def set_tags(self, position: int, tags: Mapping[str, Any], encoded: str) -> None:
        self._die_before([position])
        super().set_tags(position, tags, encoded)

    def leave(self, transition: Callable[[Pages], bool], pages: Pages | None = None) -> NoReturn:
        written = pages if pages is not None else self.pages()
        rows = list(written.rows)
        if written.position is not None:
            rows.append({"position": written.position, "item": written.item})
        if current.get() is None and not self.undoing:  # no operation is under way: the run ends here
            rows.append({"position": self.position, "item": WHOLE})
        self._die_before_rows(rows)
        super().leave(transition, pages)
