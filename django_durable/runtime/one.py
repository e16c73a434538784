"""run_hint: claim one hint and drive its turn; what a broker's message does."""

from __future__ import annotations

import threading
from uuid import UUID

from django_durable.conf import config
from django_durable.engine.claimed import Claimed
from django_durable.planes.selection import spine_alias
from django_durable.runtime.claim_run import run_held
from django_durable.runtime.claiming import claim_pass, terms_of
from django_durable.runtime.lease import process_keeper


def run_hint(hint_id: UUID, stop: threading.Event | None = None) -> bool:
    """Claim this hint, if it is due and free, and run its turn; whether there was anything to run.

    A late, duplicate or unknown id is a no-op before any user code. The hint of a blocked execution is claimed
    where other code than this one was blocked. Once ``stop`` is set, the turn hands back at its next position.
    """
    claims = _claims(hint_id)
    for claim in claims:
        run_held(claim, process_keeper(config().lease_seconds), stop)
    return bool(claims)


def _claims(hint_id: UUID) -> list[Claimed]:
    using = spine_alias()
    for blocked in (False, True):
        terms = terms_of(limit=1, queues=(), blocked=blocked, hint_id=hint_id)
        claims, touched = claim_pass(using, terms)
        if touched:
            return claims
    return []
