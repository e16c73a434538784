"""DispatchHintAdmin: the work in flight."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from django_durable.admin.columns import moment
from django_durable.admin.filters import HintStateFilter, QueueFilter
from django_durable.admin.paging import Shelf
from django_durable.admin.spine import SpineAdmin
from django_durable.models import DispatchHint

__all__ = ["DispatchHintAdmin"]


class DispatchHintAdmin(SpineAdmin[DispatchHint]):
    """What needs somebody first: parked, then blocked, then the others, in the order of the index that claims use."""

    columns = (
        "id",
        "kind",
        "state",
        "execution_id",
        "position",
        "plane",
        "revision",
        "queue",
        "priority",
        "due_at",
        "owner",
        "token",
        "failures",
        "category",
    )
    lookups = ("state", "queue")
    list_display = (
        "shown_execution",
        "kind",
        "shown_state",
        "shown_due_at",
        "queue",
        "priority",
        "owner",
        "failures",
        "category",
    )
    list_filter = (HintStateFilter, QueueFilter)

    def shelves(self, rows: QuerySet[DispatchHint]) -> list[Shelf[DispatchHint]]:
        """One state after the other."""
        states = (DispatchHint.State.PARKED, DispatchHint.State.BLOCKED, DispatchHint.State.LIVE)
        return [
            Shelf(rows=rows.filter(state=state), groups=("queue", "priority"), fields=("due_at", "id"))
            for state in states
        ]

    @admin.display(description=_("state"))
    def shown_state(self, hint: DispatchHint) -> str:
        """Whether somebody has it."""
        return str(_("leased") if hint.token is not None else DispatchHint.State(hint.state).label)

    @admin.display(description=_("due, or leased until"))
    def shown_due_at(self, hint: DispatchHint) -> str | None:
        """One column has both."""
        return moment(hint.due_at)
