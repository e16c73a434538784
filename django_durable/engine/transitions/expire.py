"""Expire: an attempt that overran its time is recorded under the turn's own token, which it then loses.

The renewal thread does it while the body still runs: the turn is fenced, the execution goes on elsewhere.
"""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError

from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions.leave import FREE, READY, Pages, run_fenced, suspend
from django_durable.sql import Sql


def expire_attempt(claim: Claimed, pages: Pages, due_at: datetime | None) -> bool:
    """Record the attempt and give the execution up, due at ``due_at`` or now; ``False``: the body was faster."""
    try:
        if due_at is not None:
            return suspend(claim, pages, wake_at=due_at)
        return _hand_over(claim, pages)
    except IntegrityError:
        return False  # the body's own checkpoint is at this position already


def _hand_over(claim: Claimed, pages: Pages) -> bool:
    changes = {**FREE, "status": READY, "revision": Sql("e.revision + 1")}
    work = SpineWork(claim.using).acknowledge(claim.hint_id, claim.token).publish(claim.intent())
    return run_fenced(claim, changes, pages.consequences(claim), work)
