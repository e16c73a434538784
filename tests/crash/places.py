"""Where the run under test keeps its rows: one database, or a tenant's plane apart from the spine, and others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import connections
from django.db.models import Model, QuerySet

from django_durable.models import SPINE_MODELS

__all__ = ["Places", "here", "rows"]

M = TypeVar("M", bound=Model)


@dataclass
class Places:
    """The aliases, and the tenant that lives on the plane."""

    spine: str = "default"
    plane: str = "default"
    tenant: str | None = None
    others: tuple[str, ...] = ()
    """Planes where the tenant does not live, or does not yet, or not any more."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Every database that takes part."""
        return tuple(dict.fromkeys((*self.planes, self.spine)))

    @property
    def planes(self) -> tuple[str, ...]:
        """Every database that may hold executions of the tenant, the one where it lives first."""
        return (self.plane, *self.others)

    @property
    def apart(self) -> bool:
        """Whether plane and spine are two databases."""
        return self.plane != self.spine

    def live_on(self, plane: str) -> None:
        """The tenant has moved, or a new run begins."""
        self.others = tuple(sorted({*self.planes} - {plane}))
        self.plane = plane


here = Places()


def rows(model: type[M]) -> QuerySet[M]:
    """All rows of a table, where it is."""
    return model._default_manager.using(here.spine if model in SPINE_MODELS else here.plane).all()


def fetch(alias: str, query: str, params: list[Any] | None = None) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with connections[alias].cursor() as cursor:
        cursor.execute(query, params)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found
