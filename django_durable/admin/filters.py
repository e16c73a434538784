"""Filters whose choices are known without asking the table, which may be large."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_durable.authoring.registry import all_workflows, declared_queues
from django_durable.conf import config
from django_durable.models import DispatchHint, Status
from django_durable.models.execution import RETRYABLE

__all__ = ["EndFilter", "HintStateFilter", "OpenFilter", "QueueFilter", "WorkflowFilter"]


class ChosenFilter(SimpleListFilter):
    """One column equal to one of some values; a value that is not among them may stand in the address."""

    def known(self) -> set[str]:
        """The values to offer."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        chosen = self.value()
        return [(name, name) for name in sorted(self.known() | ({chosen} if chosen else set()))]

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value()
        return queryset if chosen is None else queryset.filter(**{self.parameter_name or "": chosen})


class WorkflowFilter(ChosenFilter):
    """The workflows that this process knows."""

    title = _("workflow")
    parameter_name = "workflow"

    def known(self) -> set[str]:
        return {workflow.name for workflow in all_workflows()}


class QueueFilter(ChosenFilter):
    """The queues that this process knows."""

    title = _("queue")
    parameter_name = "queue"

    def known(self) -> set[str]:
        return {config().default_queue, *declared_queues()}


class OpenFilter(SimpleListFilter):
    """Dead letters that nobody has retried, or the others."""

    title = _("state")
    parameter_name = "retried"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, Any]]:
        return [("no", _("open")), ("yes", _("retried"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        is_open = {"no": True, "yes": False}.get(self.value() or "")
        return queryset if is_open is None else queryset.filter(retried_at__isnull=is_open)


class EndFilter(SimpleListFilter):
    """How the run ended."""

    title = _("ended as")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, Any]]:
        return [(status, Status(status).label) for status in RETRYABLE]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset if self.value() is None else queryset.filter(status=self.value())


class HintStateFilter(SimpleListFilter):
    """Live, blocked or parked."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, Any]]:
        return [(state.name.lower(), state.label) for state in DispatchHint.State]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = {state.name.lower(): state for state in DispatchHint.State}.get(self.value() or "")
        return queryset if state is None else queryset.filter(state=state)
