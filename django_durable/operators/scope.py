"""Scope: whose executions a request sees, as ``TENANT_RESOLVER`` decides. The one place, for REST and the admin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.module_loading import import_string

from django_durable.conf import config
from django_durable.engine.reach import reaching
from django_durable.errors import ExecutionNotFound
from django_durable.models import Execution
from django_durable.models.columns import check_name
from django_durable.planes.location import read_id
from django_durable.planes.places import Place, all_places, place_on
from django_durable.planes.selection import plane_alias

__all__ = ["Scope", "scope_of"]

M = TypeVar("M", bound=Model)
REMEMBERED = "_durable_scope"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one request may look at. ``tenant`` is ``None`` for an operator of the whole installation."""

    tenant: str | None

    @property
    def using(self) -> str:
        """Alias of the plane that the tenant's rows are on. Raises ``UnknownTenant``, ``PlaneUnavailable``."""
        return plane_alias(self.tenant or "")

    def places(self) -> list[Place]:
        """The databases with rows that may be looked at: the tenant's, or every one that is not closed."""
        if self.tenant is None:
            return [place for place in all_places() if not place.is_closed]
        return [place_on(self.using)]

    def narrow(self, rows: QuerySet[M], column: str = "tenant") -> QuerySet[M]:
        """The rows that belong to the request's tenant, by the column that says whose they are."""
        return rows if self.tenant is None else rows.filter(**{column: self.tenant})

    def find(self, id: UUID | str) -> Execution[Any]:
        """The execution with this id. Raises ``ExecutionNotFound``, also for a foreign tenant's.

        The tenant's own plane answers alone: how another one is must not show.
        """
        if self.tenant is None:
            return Execution.objects.locate(id)
        return self._find_own(id)

    def _find_own(self, id: UUID | str) -> Execution[Any]:
        wanted = read_id(id)
        using = self.using
        with reaching(using):
            rows = Execution._base_manager.using(using).filter(pk=wanted, tenant=self.tenant)
            found: Execution[Any] | None = rows.first()
        if found is None:
            raise ExecutionNotFound(f"there is no execution {wanted}")
        return found


def scope_of(request: HttpRequest) -> Scope:
    """The request's scope; the resolver is asked once a request.

    Where it gives no tenant, a superuser sees every tenant and anybody else only what has no tenant: a user
    whose tenant cannot be told must not see everybody's. Without a resolver there is nothing to keep apart.
    """
    known = getattr(request, REMEMBERED, None)
    if known is None:
        known = Scope(tenant=_resolve(request))
        setattr(request, REMEMBERED, known)
    return known


def _resolve(request: HttpRequest) -> str | None:
    path = config().tenant_resolver
    if path is None:
        return None
    tenant = import_string(path)(request)
    if tenant is not None:
        return check_name(tenant, f"the tenant that {path} returned")
    return None if getattr(request.user, "is_superuser", False) else ""
