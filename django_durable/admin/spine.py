"""SpineAdmin: rows that carry ids of every tenant's executions. They are shown to operators of all of them."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_durable.admin.columns import execution_link
from django_durable.admin.read_only import ReadOnlyAdmin
from django_durable.admin.scope import scope_of
from django_durable.planes.places import Place, place_on
from django_durable.planes.selection import spine_alias

__all__ = ["SpineAdmin"]

M = TypeVar("M", bound=Model)


class SpineAdmin(ReadOnlyAdmin[M]):
    """Read from the spine, whatever plane is selected."""

    list_display_links = None

    def has_view_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Not for a request that belongs to one tenant: these rows do not say whose they are."""
        if not super().has_view_permission(request, obj):
            return False
        try:
            return scope_of(request).tenant is None
        except PermissionDenied:  # the resolver's; every page of the admin asks here what its menu may show
            return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        """All of them."""
        return self.all_rows(spine_alias()).only(*self.columns)

    def places(self, request: HttpRequest) -> list[Place]:
        """The spine, and no plane."""
        return [place_on(spine_alias())]

    @admin.display(description=_("execution"))
    def shown_execution(self, row: Any) -> str:
        """The way to its page; what was done to a schedule has none."""
        if str(getattr(row, "verb", "")).endswith("_schedule"):
            return str(row.execution_id)
        return execution_link(row.execution_id, self.admin_site.name)
