"""DeadLetterAdmin: executions that need a person, those first that nobody has looked after."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from django_durable.admin.columns import complete_error_types, execution_link, moment, status_badge
from django_durable.admin.filters import EndFilter, OpenFilter, WorkflowFilter
from django_durable.admin.paging import Shelf
from django_durable.admin.read_only import ReadOnlyAdmin
from django_durable.models import DeadLetter

__all__ = ["DeadLetterAdmin"]


class DeadLetterAdmin(ReadOnlyAdmin[DeadLetter]):
    """Open ones, the newest first; then the others, the last retried first. The verb is on the execution's page."""

    columns = (
        "id",
        "execution_id",
        "generation",
        "tenant",
        "workflow",
        "version",
        "status",
        "created_at",
        "retried_at",
        "retried_by",
    )
    lookups = ("retried", "status", "workflow")
    list_display = (
        "shown_execution",
        "workflow",
        "tenant",
        "shown_status",
        "error_type",
        "generation",
        "shown_created_at",
        "shown_retried_at",
        "retried_by",
    )
    list_display_links = None
    list_filter = (OpenFilter, EndFilter, WorkflowFilter)

    def shelves(self, rows: QuerySet[DeadLetter]) -> list[Shelf[DeadLetter]]:
        """The open ones lie in front. Both in the order of the same index."""
        opened, retried = rows.filter(retried_at__isnull=True), rows.filter(retried_at__isnull=False)
        return [
            Shelf(rows=opened, same=("retried_at",), fields=("id",), descending=True),
            Shelf(rows=retried, fields=("retried_at", "id"), descending=True),
        ]

    def complete(self, rows: list[DeadLetter], using: str) -> None:
        """The errors' types; the list's own query reads no stored text."""
        complete_error_types(rows, using)

    @admin.display(description=_("execution"))
    def shown_execution(self, letter: DeadLetter) -> str:
        """The way to its page."""
        return execution_link(letter.execution_id, self.admin_site.name)

    @admin.display(description=_("ended as"))
    def shown_status(self, letter: DeadLetter) -> str:
        """How the run ended."""
        return status_badge(letter.status)

    @admin.display(description=_("error"))
    def error_type(self, letter: DeadLetter) -> str | None:
        """The class of the error, without its text."""
        found: str | None = vars(letter).get("error_type")
        return found

    @admin.display(description=_("created"))
    def shown_created_at(self, letter: DeadLetter) -> str | None:
        """When the run ended."""
        return moment(letter.created_at)

    @admin.display(description=_("retried"))
    def shown_retried_at(self, letter: DeadLetter) -> str:
        """When somebody took it on."""
        return moment(letter.retried_at) or str(_("open"))
