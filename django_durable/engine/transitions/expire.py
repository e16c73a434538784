"""Expire: an attempt that overran its time is recorded under the turn's own token, which it then loses.

The renewal thread does it while the body still runs: the turn is fenced, the execution goes on elsewhere.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connections

from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.isolation import read_committed
from django_durable.engine.journal import CHECKPOINT, Entry
from django_durable.engine.transitions.leave import FREE, READY, Pages, run_fenced, suspend
from django_durable.engine.transitions.wait import lock_fenced
from django_durable.models import Checkpoint
from django_durable.sql import Sql, build, fetch, field_of, value


def expire_attempt(claim: Claimed, pages: Pages, entry: Entry, due_at: datetime | None) -> bool:
    """Write ``pages`` with the attempt that overran (``entry``), and give the execution up, due at ``due_at`` or now.

    ``False``: the body was faster, whose own record of this attempt stands, or the token is gone.
    """

    def act() -> bool:
        # The look comes after the lock, which every record of the body's waits for.
        with read_committed(claim.using):
            if not lock_fenced(claim) or _is_recorded(claim, entry):
                return False
            return _hand_over(claim, pages) if due_at is None else suspend(claim, pages, wake_at=due_at)

    return repeated(claim.using, act)


def _is_recorded(claim: Claimed, entry: Entry) -> bool:
    """Whether the attempt has an end already."""
    connection = connections[claim.using]
    statement = build(
        f"SELECT 1 FROM {CHECKPOINT} c WHERE c.execution_id = {{id}} AND c.position = {{position}}"
        f" AND c.item = {{item}} AND (c.status <> 'pending' OR c.attempt >= {int(entry.changes['attempt'])})",
        id=value(connection, field_of(Checkpoint, "execution_id"), claim.id),
        position=value(connection, field_of(Checkpoint, "position"), entry.position),
        item=value(connection, field_of(Checkpoint, "item"), entry.item),
    )
    return bool(fetch(claim.using, statement))


def _hand_over(claim: Claimed, pages: Pages) -> bool:
    changes = {**FREE, "status": READY, "revision": Sql("e.revision + 1")}
    work = SpineWork(claim.using).acknowledge(claim.hint_id, claim.token).publish(claim.intent())
    return run_fenced(claim, changes, pages.consequences(claim), work)
