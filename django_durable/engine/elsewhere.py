"""Elsewhere: a turn starts something apart from itself, and waits for what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from django_durable.engine import mismatch
from django_durable.engine.contention import repeated
from django_durable.engine.journal import Record, fenced_insert, record_of
from django_durable.engine.ownership import Refusal, Suspended
from django_durable.engine.session import Session
from django_durable.engine.transitions import await_results as waiting
from django_durable.sql import fetch

CHUNK = 500
"""Checkpoints of one statement: a database takes a limited number of parameters."""


def start_elsewhere(session: Session, rows: Sequence[Mapping[str, Any]], then: Callable[[], None]) -> None:
    """Append pending checkpoints, what is in hand before them, and what ``then`` starts, in one transaction."""
    rows = [*session.pages().rows, *rows]
    claim = session.claim

    def attempt() -> bool:
        with transaction.atomic(using=claim.using):
            for begin in range(0, len(rows), CHUNK):
                chunk = rows[begin : begin + CHUNK]
                written = fetch(claim.using, fenced_insert(claim, chunk))
                if len(written) != len(chunk):
                    transaction.set_rollback(True, using=claim.using)
                    return False
                session.pause_asked = session.pause_asked or any(bool(row[0]) for row in written)
            then()
            return True

    if not session.persistently(lambda: repeated(claim.using, attempt)):
        position = rows[-1]["position"]
        why = session.explain(position)
        if why is Refusal.FOREIGN:
            session.refuse(mismatch.other_turn(position))
        if why is not Refusal.MINE:
            session.give_up(why)
    session.written()
    session.learn(record_of(row, claim.token) for row in rows)


def await_results(
    session: Session,
    positions: Sequence[int],
    enough: Callable[[Sequence[Record]], bool],
    *,
    awaiting: Sequence[object],
    wake_at: datetime | None = None,
) -> None:
    """Return once the records at these positions are ``enough``; until then the execution waits without a worker."""
    claim, pages = session.claim, session.pages()

    def attempt() -> waiting.Found:
        return waiting.await_results(claim, pages, positions, enough, awaiting=awaiting, wake_at=wake_at)

    found = session.persistently(lambda: repeated(claim.using, attempt))
    if found.refused:
        session.refuse_write()
    if found.records is None:
        session.suspended = True
        raise Suspended
    session.written()
    session.learn(found.records)


def look(session: Session, positions: Sequence[int]) -> list[Record]:
    """The records at these positions as they are now."""
    return session.persistently(lambda: waiting.read_records(session.claim, positions))


def change_elsewhere(session: Session, change: Callable[[], bool | None]) -> bool:
    """A transition on what runs elsewhere; ``None`` from it means that the fence refused."""
    changed = session.persistently(change)
    if changed is None:
        session.refuse_write()
    return changed
