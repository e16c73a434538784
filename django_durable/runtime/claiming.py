"""One pass of claiming: what is due is claimed, what is odd is dealt with, each in its own error boundary."""

from __future__ import annotations

import logging
from uuid import UUID

from django_durable.authoring.registry import code_digest, served_hashes
from django_durable.conf import config
from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions.claim import Terms, claim_due
from django_durable.engine.transitions.recover import resolve
from django_durable.ids import process_identity
from django_durable.models import DispatchHint

logger = logging.getLogger("django_durable")


def terms_of(*, limit: int, queues: tuple[str, ...], blocked: bool = False, hint_id: UUID | None = None) -> Terms:
    """What this process asks for: it leases only what it knows."""
    state = DispatchHint.State.BLOCKED if blocked else DispatchHint.State.LIVE
    return Terms(
        worker=process_identity(),
        lease_seconds=config().lease_seconds,
        limit=limit,
        queues=queues,
        known=served_hashes(),
        code=code_digest(),
        state=state,
        hint_id=hint_id,
    )


def claim_pass(using: str, terms: Terms) -> tuple[list[Claimed], int]:
    """The claims of one pass, and how many hints it touched (so that an idle pass can be told)."""
    claims, odd = claim_due(using, terms)
    for hint in odd:
        try:
            taken_over = resolve(using, terms, hint)
        except Exception:
            # Its lease lapses and it is tried again; the others of this pass go on.
            logger.exception("execution %s could not be resolved", hint.execution_id)
            continue
        if taken_over is not None:
            claims.append(taken_over)
    return claims, len(claims) + len(odd)
