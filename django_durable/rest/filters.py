"""The filters of each list, all of which have to hold. A parameter that is none of them is refused, not ignored."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from rest_framework.request import Request

from django_durable.models import ApprovalRequest, DeadLetter, DispatchHint, Execution, Schedule, Status
from django_durable.models.columns import check_name
from django_durable.operators.tags import readings, tagged
from django_durable.rest.paging import CURSOR, SIZE
from django_durable.rest.problem import BadInput

__all__ = [
    "ApprovalFilter",
    "DeadLetterFilter",
    "ExecutionFilter",
    "HintFilter",
    "ScheduleFilter",
    "check_parameters",
    "filtered",
]

HINT_STATES = [(state.name.lower(), state.label) for state in DispatchHint.State]
YES_NO = [("true", "true"), ("false", "false")]
ENDS = [(status, status) for status in ("failed", "timed_out", "dead")]


class ManyOf(filters.BaseInFilter, filters.ChoiceFilter):
    """One or more of the choices, separated by commas."""


def exactly(**options: Any) -> filters.CharFilter:
    """A text, compared as it is."""
    return filters.CharFilter(strip=False, **options)


class ExecutionFilter(filters.FilterSet):
    """Of executions."""

    status = ManyOf(choices=Status.choices, help_text="One or more, separated by commas.")
    workflow = exactly()
    version = exactly()
    key = exactly(help_text="The runs of its chain.")
    queue = exactly()
    tenant = exactly(help_text="Within what the request may see.")
    correlation_id = exactly()
    parent_id = filters.UUIDFilter()
    tag = exactly(method="with_tag", help_text="name=value")
    created_after = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gte")
    created_before = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Execution
        fields: list[str] = []

    def with_tag(self, rows: Any, _field: str, text: str) -> Any:
        """By one tag; its text may stand for a text, a number or a bool."""
        name, _equals, value = text.partition("=")
        return tagged(rows, "wanted_tag", name, readings(value))


class DeadLetterFilter(filters.FilterSet):
    """Of dead letters."""

    open = filters.ChoiceFilter(choices=YES_NO, method="not_retried", help_text="Not retried yet.")
    status = filters.ChoiceFilter(choices=ENDS)
    workflow = exactly()
    tenant = exactly(help_text="Within what the request may see.")
    execution_id = filters.UUIDFilter()

    class Meta:
        model = DeadLetter
        fields: list[str] = []

    def not_retried(self, rows: Any, _field: str, text: str) -> Any:
        """By whether somebody has looked after it."""
        return rows.filter(retried_at__isnull=text == "true")


class ScheduleFilter(filters.FilterSet):
    """Of schedules."""

    name = exactly()
    workflow = exactly()
    tenant = exactly(help_text="Within what the request may see.")
    paused = filters.ChoiceFilter(choices=YES_NO, method="is_paused")

    class Meta:
        model = Schedule
        fields: list[str] = []

    def is_paused(self, rows: Any, _field: str, text: str) -> Any:
        """By whether an operator has paused it."""
        return rows.filter(paused_at__isnull=text == "false")


class HintFilter(filters.FilterSet):
    """Of hints."""

    state = filters.ChoiceFilter(choices=HINT_STATES, method="in_state")
    queue = exactly()
    plane = exactly()
    execution_id = filters.UUIDFilter()

    class Meta:
        model = DispatchHint
        fields: list[str] = []

    def in_state(self, rows: Any, _field: str, name: str) -> Any:
        """By the state's name; what is leased is live."""
        return rows.filter(state=DispatchHint.State[name.upper()])


class ApprovalFilter(filters.FilterSet):
    """Of approvals that can be decided."""

    name = exactly()
    workflow = exactly(field_name="execution__workflow")
    tenant = exactly(field_name="execution__tenant", help_text="Within what the request may see.")
    execution_id = filters.UUIDFilter()

    class Meta:
        model = ApprovalRequest
        fields: list[str] = []


def filtered(kind: type[filters.FilterSet], request: Request, rows: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
    """The rows that pass. Raises ``BadInput`` for a wrong value, before anything is asked."""
    chosen = kind(data=request.query_params, queryset=rows, request=request)
    if not chosen.is_valid():
        raise BadInput({name: [str(text) for text in texts] for name, texts in chosen.errors.items()})
    passed: QuerySet[Any, Any] = chosen.qs
    return passed


def check_parameters(request: Request, kind: type[filters.FilterSet] | None, *more: str) -> None:
    """Raise ``BadInput`` for a parameter that the list does not have: its answer would look like a filtered one."""
    known = {CURSOR, SIZE, *more, *(kind.base_filters if kind is not None else ())}
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        raise BadInput(
            {name: [f"There is no such parameter; there are {', '.join(sorted(known))}."] for name in unknown}
        )
    empty = [name for name, text in request.query_params.items() if not text]
    if empty:
        raise BadInput({name: ["must not be empty"] for name in empty})
    _check_tag(request.query_params.get("tag"))


def _check_tag(text: str | None) -> None:
    if not text:
        return
    name, equals, value = text.partition("=")
    try:
        check_name(name, "the tag's name")
        check_name(value, "the tag's value", empty=True)
    except ValueError as error:
        raise BadInput({"tag": [str(error)]}) from None
    if not equals:
        raise BadInput({"tag": ["must be name=value"]})
