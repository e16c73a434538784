"""Scope: the tenant and the database that a request sees, as ``TENANT_RESOLVER`` decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest
from django.utils.module_loading import import_string

from django_durable.conf import config
from django_durable.errors import ExecutionNotFound
from django_durable.models import Execution
from django_durable.models.columns import check_name
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
        """Alias of the plane that lists are read from."""
        return plane_alias(self.tenant or "")

    def narrow(self, rows: QuerySet[M]) -> QuerySet[M]:
        """The rows that belong to the request's tenant."""
        return rows if self.tenant is None else rows.filter(tenant=self.tenant)

    def find(self, id: UUID | str) -> Execution[Any]:
        """The execution with this id, on whatever plane. Raises ``Http404``, also for a foreign tenant's."""
        try:
            execution = Execution.objects.locate(id)
        except ExecutionNotFound as error:
            raise Http404(str(error)) from None
        if self.tenant is not None and execution.tenant != self.tenant:
            raise Http404(f"there is no execution {execution.pk}")
        return execution


def scope_of(request: HttpRequest) -> Scope:
    """The request's scope; the resolver is asked once a request.

    Where it gives no tenant, a superuser sees every tenant and anybody else only what has no tenant: a user
    whose tenant cannot be told must not see everybody's.
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
