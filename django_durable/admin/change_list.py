"""PagedChangeList: Django's list of rows, turned page by page. It never counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_durable.admin.paging import AFTER, BEFORE, WrongCursor, turn_page
from django_durable.planes.places import Place, ask

if TYPE_CHECKING:
    from django_durable.admin.read_only import ReadOnlyAdmin

__all__ = ["PagedChangeList"]


class PagedChangeList(ChangeList):
    """Its admin says on which shelves the rows lie, and completes the rows of a page."""

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> QuerySet[Model]:
        """The rows that pass the filters. The place in the list is no filter, and no other link repeats it."""
        for name in (AFTER, BEFORE):
            self.params.pop(name, None)
            self.filter_params.pop(name, None)
        if any("\x00" in text for texts in self.filter_params.values() for text in texts):
            raise IncorrectLookupParameters("a parameter has a NUL character")  # which PostgreSQL would refuse
        return super().get_queryset(request, exclude_parameters)

    def get_results(self, request: HttpRequest) -> None:
        """One page, as ``after`` or ``before`` asks for it."""
        admin = cast("ReadOnlyAdmin[Any]", self.model_admin)
        places = self._answering(request, admin)
        try:
            page = turn_page(admin.shelves_of(self.queryset, places), request.GET.dict(), self.list_per_page)
        except WrongCursor as error:
            raise IncorrectLookupParameters(str(error)) from error
        self.is_first_page = not (page.before or AFTER in request.GET)
        self.first_page_url = self.get_query_string()
        self.previous_page_url = self.get_query_string({BEFORE: page.before}) if page.before else ""
        self.next_page_url = self.get_query_string({AFTER: page.after}) if page.after else ""
        for place in places:
            admin.complete([row for row in page.rows if row._state.db == place.alias], place.alias)
        # A plain list: the stock templates iterate and measure it. Equal counts keep them from telling a total.
        vars(self)["result_list"] = page.rows
        self.result_count = len(page.rows)
        self.full_result_count = self.result_count
        self.show_full_result_count = False
        self.show_admin_actions = bool(page.rows)
        self.can_show_all, self.multi_page = True, False

    def _answering(self, request: HttpRequest, admin: ReadOnlyAdmin[Any]) -> list[Place]:
        """The databases of the list that answer now; the others are named, and their rows are not there."""
        places = admin.places(request)
        if len(places) == 1:
            return places
        answers = ask(places, lambda place: list(admin.all_rows(place.alias).values_list("pk")[:1]))
        for away in answers.away:
            text = _("%(plane)s gives no answer; its rows are missing here. %(reason)s")
            admin.message_user(request, text % {"plane": away.place.label, "reason": away.reason}, messages.WARNING)
        return [place for place, _found in answers.found]
