"""ReadOnlyAdmin: what the admin classes of this package share. They show, and never write a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.contrib import admin
from django.contrib.admin.options import ShowFacets
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from django_durable.admin.change_list import PagedChangeList
from django_durable.admin.paging import Shelf
from django_durable.admin.scope import scope_of
from django_durable.admin.unavailable import View, or_unavailable
from django_durable.planes.places import Place

M = TypeVar("M", bound=Model)

if TYPE_CHECKING:

    class _ModelAdmin(admin.ModelAdmin[M]):
        """Generic for type checkers only."""
else:

    class _ModelAdmin(admin.ModelAdmin):
        def __class_getitem__(cls, model):
            return cls


__all__ = ["ReadOnlyAdmin"]


class ReadOnlyAdmin(_ModelAdmin[M]):
    """A list, filtered and paged by an index. No form, so nothing can be added, changed or deleted.

    Of the columns only ``columns`` are read: lists leave payloads and error texts where they are.
    """

    columns: ClassVar[tuple[str, ...]]
    """The columns that the list reads."""
    order: ClassVar[tuple[str, ...]] = ("id",)
    descending: ClassVar[bool] = True
    lookups: ClassVar[tuple[str, ...]] = ()
    """Parameters that may filter. Any other column would be an oracle for what the user may not see."""

    actions: Sequence[Any] = ()
    sortable_by = ()
    list_per_page = 100
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    view_on_site = False

    class Media:
        css = {"all": ["django_durable/admin.css"]}

    # -- who may do what ---------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def check_may_view(self, request: HttpRequest) -> None:
        """Raise ``PermissionDenied`` for whoever may not see these rows."""
        if not self.has_view_permission(request):
            raise PermissionDenied

    # -- rows --------------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        """What the request may see, from the database that it names."""
        place = self.places(request)[0]
        return scope_of(request).narrow(self.all_rows(place.alias)).only(*self.columns)

    def places(self, request: HttpRequest) -> list[Place]:
        """The databases that the list is read from."""
        return scope_of(request).places()

    def rows_of(self, request: HttpRequest, ids: Sequence[Any]) -> list[M]:
        """Those of these rows that the request may see, wherever they are, in the order of their keys."""
        found: list[M] = []
        for place in self.places(request):
            found += self.get_queryset(request).using(place.alias).filter(pk__in=ids)
        return sorted(found, key=lambda row: row.pk)

    def all_rows(self, using: str) -> QuerySet[M]:
        """Every row of the plane."""
        return self.model._default_manager.using(using)

    def shelves(self, rows: QuerySet[M]) -> list[Shelf[M]]:
        """The filtered rows in their order."""
        return [Shelf(rows=rows, fields=self.order, descending=self.descending)]

    def shelves_of(self, rows: QuerySet[M], places: Sequence[Place]) -> list[Shelf[M]]:
        """The same of several databases: the first shelf of each, then the second one of each."""
        each = [self.shelves(rows.using(place.alias)) for place in places]
        return [shelf for same in zip(*each, strict=True) for shelf in same]

    def complete(self, rows: list[M], using: str) -> None:
        """Add what these rows of one page, all of one database, need and the list's query does not read."""

    # -- the list ----------------------------------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[PagedChangeList]:
        return PagedChangeList

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        return lookup in self.lookups

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list. An action that the user may not run is refused, also one that the page never offered."""
        self.check_may_view(request)
        if request.method == "POST" and not {*request.POST.getlist("action"), ""} <= {*self.get_actions(request), ""}:
            raise PermissionDenied
        return super().changelist_view(request, extra_context)

    # -- one row -----------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """The list, and one page a row. There are no others."""
        return [
            path("", self.guarded(self.changelist_view), name=self.url_name("changelist")),
            path("<path:object_id>/change/", self.guarded(self.change_view), name=self.url_name("change")),
        ]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Rows without a page of their own lead back to their list."""
        self.check_may_view(request)
        return HttpResponseRedirect(self.url("changelist"))

    def guarded(self, view: View) -> View:
        """The view for those who may enter the admin; 503 where the database is away."""
        guarded: View = self.admin_site.admin_view(or_unavailable(view))
        return guarded

    def url_name(self, page: str) -> str:
        """A page's name within the admin's namespace."""
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    def url(self, page: str, *args: Any) -> str:
        """A page's address on this site."""
        return reverse(f"admin:{self.url_name(page)}", args=args, current_app=self.admin_site.name)
