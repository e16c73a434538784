"""Claim on planes: lease hints on the spine, then take each execution on its own plane's database.

Each hint has an error boundary of its own. A plane that cannot be reached is left alone by its breaker, one that
lacks migrations until the next look at it, and their hints go back uncounted; only a plane that cannot be
*resolved* counts, up to the cap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connections

from django_durable.clock import sql_after
from django_durable.database_errors import is_disconnect
from django_durable.dispatch.hints import put_back
from django_durable.dispatch.parking import note_unresolved
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.transitions.claim import claim_one
from django_durable.engine.transitions.hint_lease import Odd, Terms, any_due, lease
from django_durable.errors import PlaneUnavailable
from django_durable.models import DispatchHint
from django_durable.planes.behind import known_to_lag, lags
from django_durable.planes.breaker import available, guarded
from django_durable.planes.registry import Plane, alias_of, all_planes, find_plane
from django_durable.quiet import report
from django_durable.sql import Sql, build, execute, field_of, is_postgres, join, value

T = TypeVar("T")

PAUSE_SECONDS = 1.0
"""A hint of a plane that cannot be reached is due again after so long; the breaker decides what is tried."""


def claim_on_planes(spine: str, terms: Terms) -> tuple[list[Claimed], list[Odd]]:
    """Claim tenants' work, oldest first, and what could not simply be claimed."""
    planes = planes_to_try(spine, terms.plane)
    if planes is None or terms.empty:
        return [], []
    if not is_postgres(connections[spine]) and not any_due(spine, terms, planes=planes):
        return [], []  # an idle worker takes no write lock
    return claim_leased(spine, terms, repeated(spine, lambda: lease(spine, terms, planes=planes)))


def claim_leased(spine: str, terms: Terms, leased: list[Odd]) -> tuple[list[Claimed], list[Odd]]:
    """Take the executions of leased hints, each on its own plane, and what could not simply be claimed."""
    claims: list[Claimed] = []
    odd: list[Odd] = []
    for hint in leased:
        claimed = on_its_plane(spine, hint, lambda alias, hint=hint: claim_one(alias, terms, hint) or alias)  # type: ignore[misc]
        if isinstance(claimed, Claimed):
            claims.append(claimed)
        elif claimed is not None:
            odd.append(hint)
    return claims, odd


def on_its_plane(spine: str, hint: Odd, act: Callable[[str], T]) -> T | None:
    """What ``act(alias)`` makes of a leased hint on its plane; ``None``: nothing is run there now.

    Then the hint has gone back, or, after an error of its own, its lease lapses and it is tried again. The others of
    this pass go on in any case.
    """
    try:
        alias = alias_of(hint.plane)
    except PlaneUnavailable:
        note_unresolved(spine, hint.hint_id, hint.token)
        return None
    plane = find_plane(hint.plane) if hint.plane else None
    try:
        if plane is None or not _left_alone(plane):
            with guarded(alias):
                if plane is None or not lags(plane):
                    return repeated(alias, lambda: act(alias))
    except (OperationalError, InterfaceError) as error:
        if alias == spine:
            raise  # the whole pass has lost its database
        if not is_disconnect(error):
            report(error, "execution %s could not be claimed", hint.execution_id)
    except Exception as error:
        report(error, "execution %s could not be claimed", hint.execution_id)
        return None
    due_at = sql_after(connections[spine], PAUSE_SECONDS)
    execute(spine, put_back(connections[spine], hint.hint_id, hint.token, due_at))
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
