"""ExecutionAdmin: the list of executions, the page of one, and the operators' verbs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_durable.admin.acts import Act
from django_durable.admin.columns import age, complete_error_types, moment, status_badge
from django_durable.admin.confirmation import CONFIRMED, Confirmation
from django_durable.admin.dossier import open_dossier
from django_durable.admin.filters import QueueFilter, WorkflowFilter
from django_durable.admin.offered import ACTS
from django_durable.admin.paging import MergedShelf, Shelf, WrongCursor
from django_durable.admin.read_only import ReadOnlyAdmin
from django_durable.admin.reader import Reader
from django_durable.admin.scope import scope_of
from django_durable.models import Execution
from django_durable.operators.permissions import may
from django_durable.planes.places import Place
from django_durable.planes.registry import name_of, planes_in_use

__all__ = ["ExecutionAdmin"]


class ExecutionAdmin(ReadOnlyAdmin[Execution[Any]]):
    """Newest first. Every change goes through the verbs, which code and command line call too."""

    columns = (
        "id",
        "status",
        "workflow",
        "key",
        "tenant",
        "created_at",
        "wake_at",
        "pause_requested_at",
        "cancel_requested_at",
        "ending_as",
    )
    lookups = ("status__exact", "workflow", "queue")
    list_display = ("shown_status", "workflow", "key", "tenant", "shown_age", "shown_wake_at", "error_type")
    list_display_links = ("workflow",)
    list_filter = ("status", WorkflowFilter, QueueFilter)
    search_fields = ("id", "key")
    search_help_text = gettext_lazy("The whole id or the whole key.")

    # -- the list ----------------------------------------------------------------------------------------------

    @admin.display(description=gettext_lazy("status"))
    def shown_status(self, execution: Execution[Any]) -> str:
        """The status with its colour."""
        return status_badge(execution.status)

    @admin.display(description=gettext_lazy("age"))
    def shown_age(self, execution: Execution[Any]) -> str | None:
        """How long ago it was started."""
        return age(execution.created_at)

    @admin.display(description=gettext_lazy("wakes"))
    def shown_wake_at(self, execution: Execution[Any]) -> str | None:
        """When it goes on by itself."""
        return moment(execution.wake_at)

    @admin.display(description=gettext_lazy("error"))
    def error_type(self, execution: Execution[Any]) -> str | None:
        """The class of the error, without its text."""
        found: str | None = vars(execution).get("error_type")
        return found

    def complete(self, rows: list[Execution[Any]], using: str) -> None:
        """The errors' types; the list's own query reads no stored text."""
        complete_error_types(rows, using)

    def shelves_of(self, rows: QuerySet[Execution[Any]], places: Sequence[Place]) -> list[Shelf[Execution[Any]]]:
        """One order over all planes: an id says when it was made."""
        return [MergedShelf([shelf for place in places for shelf in self.shelves(rows.using(place.alias))])]

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """With data planes, which one."""
        return [*self.list_display, *(["shown_plane"] if planes_in_use() else [])]

    @admin.display(description=gettext_lazy("plane"))
    def shown_plane(self, execution: Execution[Any]) -> str:
        """The data plane that it is on."""
        return name_of(execution.using)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Execution[Any]], bool]:
        """Exact matches only: anything else would have to read the whole table."""
        if not search_term:
            return queryset, False
        wanted = Q(key=search_term)
        try:
            wanted |= Q(pk=UUID(search_term.strip()))
        except ValueError:
            pass
        return queryset.filter(wanted), False

    # -- verbs on what is ticked -------------------------------------------------------------------------------

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """The verbs for several executions at a time that the user may use."""
        return {
            f"{verb}_selected": (
                partial(self._act_on_selected, act=act),
                f"{verb}_selected",
                _("%(verb)s selected executions") % {"verb": act.label},
            )
            for verb, act in ACTS.items()
            if act.for_many and may(request.user, act.permission)
        }

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list; what is ticked has to be the ids of a page, or no page has sent the request."""
        self._selected_ids(request)
        return super().changelist_view(request, extra_context)

    @staticmethod
    def _act_on_selected(
        admin: ExecutionAdmin, request: HttpRequest, queryset: QuerySet[Execution[Any]], *, act: Act
    ) -> HttpResponse | None:
        return admin.act_on_selected(request, act)

    def act_on_selected(self, request: HttpRequest, act: Act) -> HttpResponse | None:
        """Ask, then do it to each by itself."""
        # By the ids alone, not by the list's filters: somebody else may have changed the status meanwhile, and
        # whoever is late has to be told. "Select across pages" is not offered, and not followed either.
        ids = self._selected_ids(request)
        executions = self.rows_of(request, ids)
        if gone := len(ids) - len(executions):
            self.message_user(request, _("Executions not found: %d") % gone, messages.ERROR)
        if not executions:
            return None
        confirmation = Confirmation(
            admin=self, act=act, executions=executions, back=request.get_full_path(), from_list=True
        )
        form = confirmation.form(request.POST if CONFIRMED in request.POST else None)
        if not form.is_valid():
            return confirmation.ask(request, form)
        confirmation.carry_out(request, form.cleaned_data)
        return None

    def _selected_ids(self, request: HttpRequest) -> list[UUID]:
        try:
            ids = list(dict.fromkeys(UUID(text) for text in request.POST.getlist(ACTION_CHECKBOX_NAME)))
        except ValueError:
            raise BadRequest("an execution id is a UUID") from None
        if len(ids) > self.list_per_page:
            raise BadRequest(f"{len(ids)} executions are selected; a page has {self.list_per_page}")
        return ids

    # -- one execution -----------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """The list, a page an execution, and a page a verb."""
        verbs = [
            path(
                f"<path:object_id>/{verb}/",
                self.guarded(partial(self.verb_view, act=act)),
                name=self.url_name(verb),
            )
            for verb, act in ACTS.items()
        ]
        return [*super().get_urls(), *verbs]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of one execution. It has no form: whatever is sent to it is shown the page."""
        self.check_may_view(request)
        execution = scope_of(request).find(object_id)
        try:
            dossier = open_dossier(execution, request.GET.dict(), Reader.of(request.user), self.admin_site.name)
        except WrongCursor:
            return HttpResponseRedirect(self.url("change", execution.pk))
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media["css"],
            "has_view_permission": True,
            "title": str(execution),
            "original": execution,
            "dossier": dossier,
            "is_live": not execution.is_terminal,
            "verbs": [
                {"act": act, "url": self.url(verb, execution.pk)}
                for verb, act in ACTS.items()
                if may(request.user, act.permission) and act.fits(execution)
            ],
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/django_durable/execution.html", context)

    def verb_view(self, request: HttpRequest, object_id: str, *, act: Act) -> HttpResponse:
        """GET asks, POST does it; both only for those who may, whatever the status."""
        self.check_may_view(request)
        if not may(request.user, act.permission):
            raise PermissionDenied
        execution = scope_of(request).find(object_id)
        page = self.url("change", execution.pk)
        confirmation = Confirmation(admin=self, act=act, executions=[execution], back=page)
        form = confirmation.form(request.POST if request.method == "POST" else None)
        if not form.is_valid():
            return confirmation.ask(request, form)
        confirmation.carry_out(request, form.cleaned_data)
        return HttpResponseRedirect(page)
