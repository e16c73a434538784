"""OperatorActionAdmin: who did what to which execution."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_durable.admin.columns import moment
from django_durable.admin.spine import SpineAdmin
from django_durable.models import OperatorAction

__all__ = ["OperatorActionAdmin"]


class OperatorActionAdmin(SpineAdmin[OperatorAction]):
    """Newest first. The reasons are on the executions' pages."""

    columns = ("id", "execution_id", "verb", "actor", "at")
    list_display = ("shown_at", "verb", "actor", "shown_execution")
    search_fields = ("execution_id",)
    search_help_text = _("The whole id of an execution.")

    @admin.display(description=_("at"))
    def shown_at(self, action: OperatorAction) -> str | None:
        """When."""
        return moment(action.at)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[OperatorAction], bool]:
        """One execution's; nothing for what is no id."""
        if not search_term:
            return queryset, False
        try:
            return queryset.filter(execution_id=UUID(search_term.strip())), False
        except ValueError:
            return queryset.none(), False
