"""One pass of claiming: what is due is claimed, what is odd is dealt with, each in its own error boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django_durable.authoring.registry import code_digest, served_hashes
from django_durable.conf import config
from django_durable.dispatch.flow_queue import limited_queues
from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions.claim import claim_due
from django_durable.engine.transitions.claim_planes import claim_leased, claim_on_planes, on_its_plane, planes_to_try
from django_durable.engine.transitions.hint_lease import Odd, Terms
from django_durable.engine.transitions.recover import resolve
from django_durable.engine.transitions.step_claim import claim_step, lease_steps
from django_durable.ids import process_identity
from django_durable.models import DispatchHint
from django_durable.planes.registry import planes_in_use
from django_durable.runtime.flow_claiming import lease_within_limits

KINDS = 4
"""How many kinds of work a pass may begin with."""


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


def claim_pass(using: str, terms: Terms, first: int = 0) -> tuple[list[Claimed], int]:
    """The claims of one pass, and how many hints it touched (so that an idle pass can be told).

    Tenants' turns come first, then the spine's own, then steps that run elsewhere take the room that is left, then
    what is in queues with limits. Who finds no room left begins with another of the KINDS (``first``) the next time:
    none waits for ever.
    """
    limited_queues(using, frozenset(terms.queues))  # a declared queue has its limits from the first claim on
    sources = (claim_tenants_turns, claim_own_turns, claim_steps, claim_within_limits)
    claims: list[Claimed] = []
    touched = 0
    for source in (*sources[first:], *sources[:first]):
        found, more = source(using, replace(terms, limit=terms.limit - touched))
        claims += found
        touched += more
    return claims, touched


def claim_steps(using: str, terms: Terms) -> tuple[Sequence[Claimed], int]:
    """The attempts of steps elsewhere that are due, on every plane; how many hints were touched."""
    if terms.state != DispatchHint.State.LIVE:
        return [], 0
    wanted = planes_to_try(using, terms.plane, own=True) if planes_in_use() else None
    if wanted is None and planes_in_use():
        return [], 0
    leased = lease_steps(using, terms, planes=wanted)
    return _with_steps(using, terms, leased), len(leased)


def claim_tenants_turns(using: str, terms: Terms) -> tuple[Sequence[Claimed], int]:
    """Claim executions on planes whose turn it is, and how many hints that touched."""
    if terms.plane == "" or not planes_in_use():
        return [], 0
    return _with_resolved(using, terms, *claim_on_planes(using, terms))


def claim_own_turns(using: str, terms: Terms) -> tuple[Sequence[Claimed], int]:
    """Claim executions on the spine's own database whose turn it is, and how many hints that touched."""
    if terms.plane:
        return [], 0
    return _with_resolved(using, terms, *claim_due(using, terms))


def claim_within_limits(using: str, terms: Terms) -> tuple[Sequence[Claimed], int]:
    """Claim turns and steps in queues with limits, on every plane, and how many hints that touched."""
    leased = lease_within_limits(using, terms)
    turns = [hint for hint in leased if hint.kind == DispatchHint.Kind.TURN]
    claims, _touched = _with_resolved(using, terms, *claim_leased(using, terms, turns))
    return [*claims, *_with_steps(using, terms, [hint for hint in leased if hint not in turns])], len(leased)


def _with_steps(using: str, terms: Terms, leased: Sequence[Odd]) -> list[Claimed]:
    found = (on_its_plane(using, hint, lambda alias, hint=hint: claim_step(alias, terms, hint)) for hint in leased)  # type: ignore[misc]
    return [claim for claim in found if claim is not None]


def _with_resolved(
    using: str, terms: Terms, claims: list[Claimed], odd: Sequence[Odd]
) -> tuple[Sequence[Claimed], int]:
    """The claims, with those that what is odd about a hint left possible."""
    found = (on_its_plane(using, hint, lambda alias, hint=hint: resolve(alias, terms, hint)) for hint in odd)  # type: ignore[misc]
    taken_over = [claim for claim in found if claim is not None]
    return [*claims, *taken_over], len(claims) + len(odd)
