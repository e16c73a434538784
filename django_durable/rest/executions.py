"""ExecutionViewSet: executions. Lists, looks and the start are here, the verbs in ``execution_verbs``."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.db import connections
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import exceptions
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.errors import ExecutionCancelled, ExecutionFailed
from django_durable.models import Execution
from django_durable.operators.chain import current_run
from django_durable.operators.inspect import stored_value
from django_durable.operators.result import wait_for_result
from django_durable.operators.unread import unread_messages
from django_durable.planes.places import place_on
from django_durable.rest.bodies import LONGEST_WAIT, StartBody
from django_durable.rest.execution_verbs import ExecutionVerbs
from django_durable.rest.filters import ExecutionFilter, check_parameters, filtered
from django_durable.rest.histories import history_page
from django_durable.rest.idempotency import idempotency_key
from django_durable.rest.paging import Listing
from django_durable.rest.problem import BadInput
from django_durable.rest.representations import Checkpoint, ExecutionDetail, ExecutionRow, Result, ValueShown
from django_durable.rest.schemas import ID, IDEMPOTENT, IF_NONE_MATCH, PAGED, VALUES, documented, filters_of, page_of
from django_durable.rest.starting import begin

__all__ = ["ExecutionViewSet"]

COLUMNS = tuple(name for name in map(str, ExecutionRow().fields) if name != "plane")
DERIVED = {"plane", "awaiting", "input", "output", "error", "unread"}
MORE = tuple(name for name in map(str, ExecutionDetail().fields) if name not in DERIVED)
NEWEST_FIRST, OLDEST_FIRST = (
    Listing(columns=COLUMNS, shown=ExecutionRow),
    Listing(columns=COLUMNS, shown=ExecutionRow, descending=False),
)
UNCHANGED = {304: OpenApiResponse(description="Nothing has changed.")}
WAIT = OpenApiParameter(
    "wait", {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT}, description="Wait so many seconds for the end."
)


class ExecutionViewSet(ExecutionVerbs):
    """Executions that the request's tenant owns."""

    verbs: ClassVar[dict[str, str]] = {
        **ExecutionVerbs.verbs,
        "list": "view",
        "create": "start",
        "retrieve": "view",
        "history": "view",
        "children": "view",
        "result": "view",
        "published_value": "view",
    }

    @documented(
        "List executions, the newest first.",
        page_of(ExecutionRow, "ExecutionPage"),
        parameters=[*PAGED, *filters_of(ExecutionFilter)],
        refusals=[404],
    )
    def list(self, request: Request) -> Response:
        check_parameters(request, ExecutionFilter)
        return self._page(request, NEWEST_FIRST)

    @documented(
        "Start an execution of a workflow that REST may start.",
        ExecutionRow,
        body=StartBody,
        status=201,
        more={200: OpenApiResponse(ExecutionRow, description="The key's execution, which there is already.")},
        parameters=[IDEMPOTENT],
        refusals=[404, 409, 422],
    )
    def create(self, request: Request) -> Response:
        body = self.body(StartBody)
        execution = begin(body, tenant=self.scope.tenant, header_key=idempotency_key(request))
        row = ExecutionRow(vars(execution)).data
        address = request.build_absolute_uri(self.address(execution))
        return Response(row, status=201 if execution.is_new else 200, headers={"Location": address})

    @documented(
        "One execution.",
        ExecutionDetail,
        more=UNCHANGED,
        parameters=[ID, VALUES, IF_NONE_MATCH],
        refusals=[404],
    )
    def retrieve(self, request: Request, pk: str) -> Response:
        return self.conditional(self._detail(self.scope.find(pk)), ExecutionDetail)

    @documented(
        "What happened at each position.",
        page_of(Checkpoint, "HistoryPage"),
        parameters=[ID, VALUES, *PAGED],
        refusals=[404],
    )
    @action(detail=True)
    def history(self, request: Request, pk: str) -> Response:
        check_parameters(request, None, "values")
        return Response(history_page(request, self.scope.find(pk), self.values))

    @documented(
        "The executions that it has started as children.",
        page_of(ExecutionRow, "ChildPage"),
        parameters=[ID, *PAGED],
        refusals=[404],
    )
    @action(detail=True)
    def children(self, request: Request, pk: str) -> Response:
        check_parameters(request, None)
        parent = self.scope.find(pk)
        page = OLDEST_FIRST.page(
            request,
            [place_on(parent.using)],
            lambda place: self._rows(place.alias).filter(parent_id=parent.pk),
            whole=self.scope.tenant is None,
        )
        return Response(page)

    @documented(
        "How it has ended, if it has.",
        Result,
        more={202: OpenApiResponse(Result, description="It has not ended."), **UNCHANGED},
        parameters=[ID, WAIT, VALUES, IF_NONE_MATCH],
        refusals=[404],
    )
    @action(detail=True)
    def result(self, request: Request, pk: str) -> Response:
        execution = self._waited_for(self.scope.find(pk), self._seconds_to_wait())
        ended = execution.is_terminal
        shown = {"id": execution.pk, "status": execution.status, **self._outcome(execution)}
        return self.conditional(shown, Result) if ended else Response(Result(shown).data, status=202)

    @documented(
        "What the workflow last published under this key.",
        ValueShown,
        more=UNCHANGED,
        parameters=[ID, VALUES, IF_NONE_MATCH],
        refusals=[404],
    )
    @action(detail=True, url_path=r"values/(?P<key>[\s\S]+)", url_name="value")
    def published_value(self, request: Request, pk: str, key: str) -> Response:
        execution = self.scope.find(pk)
        # No database holds a NUL in a name, and PostgreSQL would not even look.
        stored = None if "\x00" in key else stored_value(execution, key)
        if stored is None:
            raise exceptions.NotFound("It has published nothing under this key.")
        return self.conditional({"key": key, "value": self.values.value(stored)}, ValueShown)

    # -- parts -------------------------------------------------------------------------------------------------

    def _rows(self, using: str) -> Any:
        return self.scope.narrow(Execution.objects.using(using))

    def _page(self, request: Request, listing: Listing) -> Response:
        filtered(ExecutionFilter, request, Execution.objects.none())
        page = listing.page(
            request,
            self.scope.places(),
            lambda place: filtered(ExecutionFilter, request, self._rows(place.alias)),
            whole=self.scope.tenant is None,
        )
        return Response(page)

    def _detail(self, execution: Execution[Any]) -> dict[str, Any]:
        return {
            **{name: getattr(execution, name) for name in MORE},
            "awaiting": json.loads(execution.awaiting or "[]"),
            "input": self.values.value(execution.encoded_input),
            **self._outcome(execution),
            "unread": unread_messages(execution),
        }

    def _outcome(self, execution: Execution[Any]) -> dict[str, Any]:
        output = execution.encoded_output if execution.status == "completed" else None
        error = self.values.error(execution.encoded_error, status=execution.status)
        return {"output": self.values.value(output), "error": error}

    def _seconds_to_wait(self) -> float:
        text = self.request.query_params.get("wait", "0")
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= LONGEST_WAIT:
            raise BadInput({"wait": [f"must be a number of seconds from 0 to {LONGEST_WAIT}"]})
        return seconds

    @staticmethod
    def _waited_for(execution: Execution[Any], seconds: float) -> Execution[Any]:
        """The chain's current run, once it has ended or the time is over."""
        # A transaction around the request could never see the end: then there is nothing to wait for.
        if seconds and not connections[execution.using].in_atomic_block:
            try:
                wait_for_result(execution, seconds)
            except (TimeoutError, ExecutionFailed, ExecutionCancelled):
                pass  # what it is then is read from the row
        return current_run(execution)
