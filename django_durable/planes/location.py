"""Find an execution by its id."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from django.db import DatabaseError, InterfaceError, connections

from django_durable.database_errors import is_disconnect, is_mistake
from django_durable.errors import ExecutionNotFound, PlaneUnavailable
from django_durable.models import Execution, ExecutionRoute
from django_durable.planes.breaker import guarded
from django_durable.planes.places import lacks
from django_durable.planes.registry import all_planes, planes_in_use
from django_durable.planes.selection import spine_alias


def locate(id: uuid.UUID | str) -> Execution[Any]:
    """The execution with this id. Raises ``ExecutionNotFound``, also for text that is no UUID."""
    wanted = read_id(id)
    away: list[str] = []
    for alias in _candidates(wanted):
        try:
            with guarded(alias):
                found: Execution[Any] | None = Execution._base_manager.using(alias).filter(pk=wanted).first()
        except (DatabaseError, InterfaceError) as error:
            _pass_over(alias, error)
            away.append(alias)
            continue
        if found is not None:
            return found
    away += [p.database for p in all_planes().values() if p.claimable and p.database not in connections.settings]
    if away:
        raise PlaneUnavailable(
            f"execution {wanted} was not found, but {', '.join(sorted(away))} cannot be reached right now, or lacks"
            " migrations"
        )
    raise ExecutionNotFound(f"there is no execution {wanted}")


def read_id(id: uuid.UUID | str) -> uuid.UUID:
    """An execution's id out of its text. Raises ``ExecutionNotFound`` for what is none."""
    try:
        return id if isinstance(id, uuid.UUID) else uuid.UUID(str(id))
    except ValueError:
        raise ExecutionNotFound(f"{str(id)[:64]!r} is not an execution id (a UUID)") from None


def _pass_over(alias: str, error: DatabaseError | InterfaceError) -> None:
    """Nothing where the plane has troubles of its own. Raises the error again where it is the caller's."""
    if is_disconnect(error):
        return
    if is_mistake(error) or alias == spine_alias() or connections[alias].in_atomic_block:
        lacks(alias, error)


def _candidates(wanted: uuid.UUID) -> Iterator[str]:
    """The plane that the route names first, then every other: a route may be stale, or lost with the spine."""
    spine = spine_alias()
    if not planes_in_use():
        yield spine
        return
    tried: list[str] = []
    route = ExecutionRoute.objects.using(spine).filter(pk=wanted).values_list("plane", flat=True).first()
    planes = all_planes()
    if route in planes:
        tried.append(planes[route].database)
        yield tried[0]
    for alias in [spine, *(plane.database for plane in planes.values())]:
        if alias not in tried and alias in connections.settings:
            yield alias
