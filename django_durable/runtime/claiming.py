"""One pass of claiming: what is due is claimed, what is odd is dealt with, each in its own error boundary."""

from __future__ import annotations

import logging
from dataclasses import replace
from uuid import UUID

from django_durable.authoring.registry import code_digest, served_hashes
from django_durable.conf import config
from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions.claim import Odd, Terms, claim_due
from django_durable.engine.transitions.claim_planes import claim_on_planes, planes_to_try, resolved_plane
from django_durable.engine.transitions.recover import resolve
from django_durable.engine.transitions.step_claim import ClaimedStep, claim_step, lease_steps
from django_durable.ids import process_identity
from django_durable.models import DispatchHint
from django_durable.planes.breaker import guarded
from django_durable.planes.registry import planes_in_use
from django_durable.quiet import report

logger = logging.getLogger("django_durable")


def terms_of(
    *,
    limit: int,
    queues: tuple[str, ...],
    blocked: bool = False,
    hint_id: UUID | None = None,
    plane: str | None = None,
) -> Terms:
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
        plane=plane,
    )


def claim_pass(using: str, terms: Terms) -> tuple[list[Claimed], int]:
    """The claims of one pass, and how many hints it touched (so that an idle pass can be told).

    Turns first; steps that run elsewhere take the room that is left.
    """
    claims, touched = claim_turns(using, terms)
    if terms.state != DispatchHint.State.LIVE:
        return claims, touched
    steps, more = claim_steps(using, replace(terms, limit=terms.limit - touched))
    return [*claims, *steps], touched + more


def claim_steps(using: str, terms: Terms) -> tuple[list[ClaimedStep], int]:
    """The attempts of steps elsewhere that are due, on every plane; how many hints were touched."""
    wanted = planes_to_try(using, terms.plane, own=True) if planes_in_use() else None
    if wanted is None and planes_in_use():
        return [], 0
    leased = lease_steps(using, terms, planes=wanted)
    claims = [claim for hint in leased if (claim := _claim_step(using, terms, hint)) is not None]
    return claims, len(leased)


def _claim_step(using: str, terms: Terms, hint: Odd) -> ClaimedStep | None:
    alias = resolved_plane(using, hint)
    if alias is None:
        return None
    try:
        with guarded(alias):
            return claim_step(alias, terms, hint)
    except Exception as error:
        # Its lease lapses and it is tried again; the others of this pass go on.
        report(error, "a step of execution %s could not be claimed", hint.execution_id)
        return None


def claim_turns(using: str, terms: Terms) -> tuple[list[Claimed], int]:
    """Claim executions whose turn it is, and how many hints that touched."""
    claims: list[Claimed] = []
    found: list[tuple[str, Odd]] = []
    if terms.plane != "" and planes_in_use():
        # Tenants' work first, the spine's own within the same batch.
        claims, found = claim_on_planes(using, terms)
    odd = found
    if not terms.plane:
        rest = replace(terms, limit=terms.limit - len(claims) - len(found))
        own, odd_own = claim_due(using, rest)
        claims += own
        odd = found + [(using, hint) for hint in odd_own]
    for alias, hint in odd:
        try:
            with guarded(alias):
                taken_over = resolve(alias, terms, hint)
        except Exception as error:
            # Its lease lapses and it is tried again; the others of this pass go on.
            report(error, "execution %s could not be resolved", hint.execution_id)
            continue
        if taken_over is not None:
            claims.append(taken_over)
    return claims, len(claims) + len(odd)
