"""Expire: an attempt that overran its time is recorded under the turn's own token, which it then loses.

The renewal thread does it while the body still runs: the turn is fenced, the execution goes on elsewhere.
"""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, connections

from django_durable.dispatch.hints import acknowledge
from django_durable.dispatch.intents import Publication
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.journal import fence
from django_durable.engine.transitions.leave import FREE, Pages, suspend, update_execution
from django_durable.sql import Sql, run_guarded


def expire_attempt(claim: Claimed, pages: Pages, due_at: datetime | None) -> bool:
    """Record the attempt and give the execution up, due at ``due_at`` or now; ``False``: the body was faster."""
    try:
        if due_at is not None:
            return suspend(claim, pages, wake_at=due_at)
        return _hand_over(claim, pages)
    except IntegrityError:
        return False  # the body's own checkpoint is at this position already


def _hand_over(claim: Claimed, pages: Pages) -> bool:
    changes = {**FREE, "status": "pending", "revision": Sql("e.revision + 1")}
    publication = Publication(claim.using, claim.intent())
    connection = connections[claim.using]
    consequences = [
        *pages.consequences(claim),
        acknowledge(connection, claim.hint_id, claim.token),
        *publication.consequences(),
    ]
    guard = update_execution(claim.using, changes, fence(claim))
    held = bool(repeated(claim.using, lambda: run_guarded(claim.using, guard, consequences)))
    if held:
        publication.announce()
    return held
