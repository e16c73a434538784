"""The rows of ``planes list``."""

from __future__ import annotations

from typing import Any

from django.db.models import Count

from django_durable.models import TenantPlacement
from django_durable.operators.planes import count_unfinished
from django_durable.planes.behind import behind
from django_durable.planes.places import Place, ask
from django_durable.planes.registry import all_planes
from django_durable.planes.selection import spine_alias

__all__ = ["plane_rows"]


def plane_rows() -> list[dict[str, Any]]:
    """Every registered plane by name, closed ones too; what a plane that gives no answer would say is ``None``."""
    counted = TenantPlacement.objects.using(spine_alias()).values_list("plane").annotate(Count("pk")).order_by()
    tenants = dict(counted)
    rows: list[dict[str, Any]] = []
    for name, plane in sorted(all_planes(fresh=True).items()):
        place = Place(plane=name, alias=plane.database, state=plane.state, generation=plane.generation)
        lagging = ask([place], lambda one: len(behind(one.alias)))
        # Without its tables a plane still answers how many migrations it lacks.
        counted_there = ask([place] if lagging.found else [], lambda one: count_unfinished(one.alias))
        away = lagging.away or counted_there.away
        rows.append(
            {
                "name": name,
                "database": plane.database,
                "state": plane.state,
                "generation": plane.generation,
                "reachable": not lagging.away,
                "migrations_behind": lagging.found[0][1] if lagging.found else None,
                "unfinished": counted_there.found[0][1] if counted_there.found else None,
                "tenants": tenants.get(name, 0),
                "reason": away[0].reason if away else "",
            }
        )
    return rows
