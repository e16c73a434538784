"""Claim on planes: lease hints on the spine, then take each execution on its own plane's database.

Each hint has an error boundary of its own. A plane that cannot be reached is left alone by its breaker, one that
lacks migrations until the next look at it, and their hints go back uncounted; only a plane that cannot be
*resolved* counts, up to the cap.
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
from django_durable.planes.behind import known_to_lag, lags
from django_durable.planes.breaker import available, guarded
from django_durable.planes.registry import Plane, alias_of, all_planes, find_plane
from django_durable.quiet import report
from django_durable.sql import Sql, build, execute, field_of, is_postgres, join, value

PAUSE_SECONDS = 1.0
"""A hint of a plane that cannot be reached is due again after so long; the breaker decides what is tried."""


def claim_on_planes(spine: str, terms: Terms) -> tuple[list[Claimed], list[tuple[str, Odd]]]:
    """Claim tenants' work, oldest first, and what could not simply be claimed with its plane's alias."""
    planes = planes_to_try(spine, terms.plane)
    if planes is None or terms.empty:
        return [], []
    if not is_postgres(connections[spine]) and not any_due(spine, terms, planes=planes):
        return [], []  # an idle worker takes no write lock
    leased = repeated(spine, lambda: lease(spine, terms, planes=planes))
    claims: list[Claimed] = []
    odd: list[tuple[str, Odd]] = []
    for hint in leased:
        alias = resolved_plane(spine, hint)
        if alias is None:
            continue
        claimed = _claim_guarded(spine, find_plane(hint.plane), terms, hint)
        if isinstance(claimed, Claimed):
            claims.append(claimed)
        elif claimed:
            odd.append((alias, hint))
    return claims, odd


def resolved_plane(spine: str, hint: Odd) -> str | None:
    """The database of a leased hint's plane; one that cannot be told is counted and given back."""
    try:
        return alias_of(hint.plane)
    except PlaneUnavailable:
        note_unresolved(spine, hint.hint_id, hint.token)
        return None


def planes_to_try(spine: str, only: str | None, *, own: bool = False) -> Sql | None:
    """The one plane that is served, or every plane, the spine's own only if asked for; without those to be left
    alone now. ``None``: there is none."""
    connection = connections[spine]

    def bound(name: str) -> Sql:
        return value(connection, field_of(DispatchHint, "plane"), name)

    left_out = [p.name for p in all_planes().values() if _left_alone(p)]
    if only is not None:
        return None if only in left_out else build("h.plane = {name}", name=bound(only))
    names = [bound(name) for name in [*([] if own else [""]), *left_out]]
    return build("h.plane NOT IN ({names})", names=join(", ", names)) if names else Sql("1 = 1")


def _left_alone(plane: Plane) -> bool:
    """Closed, on a database that only other processes know, away, or without its migrations. No query."""
    if not plane.claimable or plane.database not in connections.settings:
        return True
    return not available(plane.database) or known_to_lag(plane)


def _claim_guarded(spine: str, plane: Plane, terms: Terms, hint: Odd) -> Claimed | bool:
    """The claim, or whether the hint is odd; ``False``: nothing is run on its plane now, the hint has gone back."""
    alias = plane.database
    if not _left_alone(plane):
        try:
            with guarded(alias):
                if not lags(plane):
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
