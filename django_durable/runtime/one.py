"""run_hint: claim one hint and drive its turn; what a broker's message does."""

from __future__ import annotations

import threading
from uuid import UUID

from django_durable.conf import config
from django_durable.planes.selection import spine_alias
from django_durable.runtime.claiming import claim_pass, terms_of
from django_durable.runtime.lease import process_keeper
from django_durable.runtime.turn import run_turn


def run_hint(hint_id: UUID, stop: threading.Event | None = None) -> bool:
    """Claim this hint, if it is due and free, and run its turn; whether there was anything to run.

    A late, duplicate or unknown id is a no-op before any user code.
    """
    claims, _touched = claim_pass(spine_alias(), terms_of(limit=1, queues=(), hint_id=hint_id))
    keeper = process_keeper(config().lease_seconds)
    for claim in claims:
        lease = keeper.hold(claim)
        try:
            run_turn(claim, lease, stop)
        finally:
            keeper.drop(lease)
    return bool(claims)
