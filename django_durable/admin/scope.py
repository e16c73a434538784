"""Scope: what a request sees, as REST decides it too, in the admin's terms: what is not there is a page's 404."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest

from django_durable.errors import ExecutionNotFound
from django_durable.models import Execution
from django_durable.operators import scope

__all__ = ["Scope", "scope_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope(scope.Scope):
    """What one request may look at."""

    def find(self, id: UUID | str) -> Execution[Any]:
        """The execution with this id. Raises ``Http404``, also for a foreign tenant's."""
        try:
            return scope.Scope.find(self, id)
        except ExecutionNotFound as error:
            raise Http404(str(error)) from None


def scope_of(request: HttpRequest) -> Scope:
    """The request's scope; the resolver is asked once a request."""
    return Scope(tenant=scope.scope_of(request).tenant)
