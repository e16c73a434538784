"""Claim on planes: lease hints on the spine, then take each execution on its own plane's database.

Each hint has an error boundary of its own. A plane that cannot be reached is left alone by its breaker, and its
hints go back uncounted; only a plane that cannot be *resolved* counts, up to the cap.
"""

from __future__ import annotations

import time

from django.db import InterfaceError, OperationalError, connections

from django_durable.clock import sql_after
from django_durable.dispatch.hints import put_back
from django_durable.dispatch.parking import note_unresolved
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.transitions.claim import Odd, Terms, any_due, claim_one, lease
from django_durable.errors import PlaneUnavailable
from django_durable.models import DispatchHint
from django_durable.planes.breaker import available, guarded
from django_durable.planes.registry import alias_of, all_planes
from django_durable.quiet import report
from django_durable.sql import Sql, build, execute, field_of, is_postgres, join, value

PAUSE_SECONDS = 1.0
"""A hint of a plane that cannot be reached is due again after so long; the breaker decides what is tried."""


def claim_on_planes(spine: str, terms: Terms) -> tuple[list[Claimed], list[tuple[str, Odd]]]:
    """Claim tenants' work, oldest first, and what could not simply be claimed with its plane's alias."""
    if terms.empty:
        return [], []
    planes = _planes_to_try(spine)
    if not is_postgres(connections[spine]) and not any_due(spine, terms, planes=planes):
        return [], []  # an idle worker takes no write lock
    leased = repeated(spine, lambda: lease(spine, terms, planes=planes))
    claims: list[Claimed] = []
    odd: list[tuple[str, Odd]] = []
    for hint in leased:
        try:
            alias = alias_of(hint.plane)
        except PlaneUnavailable:
            note_unresolved(spine, hint.hint_id, hint.token)
            continue
        claimed = _claim_guarded(spine, alias, terms, hint)
        if isinstance(claimed, Claimed):
            claims.append(claimed)
        elif claimed:
            odd.append((alias, hint))
    return claims, odd


def _planes_to_try(spine: str) -> Sql:
    """Every plane but the spine's own, the closed ones and those whose breaker is open."""
    connection = connections[spine]
    left_out = [p.name for p in all_planes().values() if not p.claimable or not available(p.database)]
    names = [value(connection, field_of(DispatchHint, "plane"), name) for name in ["", *left_out]]
    return build("h.plane NOT IN ({names})", names=join(", ", names))


def _claim_guarded(spine: str, alias: str, terms: Terms, hint: Odd) -> Claimed | bool:
    """The claim, or whether the hint is odd; ``False``: its plane is away and the hint has gone back."""
    if available(alias):
        try:
            with guarded(alias):
                sent_at = time.monotonic()
                return repeated(alias, lambda: claim_one(alias, terms, hint, sent_at)) or True
        except (OperationalError, InterfaceError):
            pass
        except Exception as error:
            # Its lease lapses and it is tried again; the others of this pass go on.
            report(error, "execution %s could not be claimed on its plane", hint.execution_id)
            return False
    execute(
        spine, put_back(connections[spine], hint.hint_id, hint.token, sql_after(connections[spine], PAUSE_SECONDS))
    )
    return False
