"""DeadLetterViewSet: executions that need a person, and the retry that takes one on."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.errors import ExecutionNotFound, InvalidTransition, PlaneUnavailable
from django_durable.models import DeadLetter, Execution
from django_durable.operators.retry import retry
from django_durable.operators.values import Values
from django_durable.planes.places import Place, ask
from django_durable.rest import representations
from django_durable.rest.bodies import ReasonBody
from django_durable.rest.filters import DeadLetterFilter, check_parameters, filtered
from django_durable.rest.paging import Listing
from django_durable.rest.problem import BadInput
from django_durable.rest.representations import Outcome
from django_durable.rest.schemas import PAGED, documented, filters_of, page_of
from django_durable.rest.view import DurableViewSet

__all__ = ["DeadLetterViewSet"]

COLUMNS = (
    "id",
    "execution_id",
    "generation",
    "workflow",
    "version",
    "tenant",
    "correlation_id",
    "status",
    "recoveries",
    "encoded_error",
    "created_at",
    "retried_at",
    "retried_by",
)
LISTING = Listing(columns=COLUMNS, shown=representations.DeadLetter, by="created_at")
LARGEST = 2**63 - 1
ID = OpenApiParameter("id", {"type": "integer", "minimum": 1}, OpenApiParameter.PATH)
PLANE = OpenApiParameter("plane", str, description="Where several planes have a letter of this id.")


class DeadLetterViewSet(DurableViewSet):
    """Newest first."""

    verbs: ClassVar[dict[str, str]] = {"list": "view_dead_letters", "retry": "retry"}

    @documented(
        "List dead letters, the newest first.",
        page_of(representations.DeadLetter, "DeadLetterPage"),
        parameters=[*PAGED, *filters_of(DeadLetterFilter)],
        refusals=[404],
    )
    def list(self, request: Request) -> Response:
        check_parameters(request, DeadLetterFilter)
        filtered(DeadLetterFilter, request, DeadLetter.objects.none())
        values = Values(payloads=self.payloads)
        page = LISTING.page(
            request,
            self.scope.places(),
            lambda place: filtered(DeadLetterFilter, request, self._rows(place)),
            whole=self.scope.tenant is None,
            read=lambda row: {**row, "error": values.error(row["encoded_error"], status=row["status"])},
        )
        return Response(page)

    @documented(
        "Retry the execution of an open dead letter.",
        Outcome,
        body=ReasonBody,
        parameters=[ID, PLANE],
        refusals=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        body = self.body(ReasonBody)
        letter = self._find(pk)
        if letter.retried_at is not None:
            raise InvalidTransition(
                f"execution {letter.execution_id} was retried by {letter.retried_by} already", actor=letter.retried_by
            )
        execution: Execution[Any] = Execution.objects.using(letter._state.db).get(pk=letter.execution_id)
        retry(execution, actor=self.actor, reason=body["reason"], generation=letter.generation)
        return Response(Outcome({"id": execution.pk, "status": execution.status}).data)

    def _rows(self, place: Place) -> Any:
        return self.scope.narrow(DeadLetter.objects.using(place.alias))

    def _find(self, text: str) -> DeadLetter:
        """The letter of this id; where planes have one each, the one on the plane that is named."""
        if not (text.isascii() and text.isdigit() and int(text[:20]) <= LARGEST):
            raise ExecutionNotFound(f"there is no dead letter {text[:64]!r}")
        plane = self.request.query_params.get("plane")
        places = [place for place in self.scope.places() if plane in (None, place.label)]
        answers = ask(places, lambda place: self._rows(place).filter(pk=int(text)).first())
        found: list[DeadLetter] = [letter for _place, letter in answers.found if letter is not None]
        if answers.away and len(found) != 1:
            raise PlaneUnavailable
        if not found:
            raise ExecutionNotFound(f"there is no dead letter {text}")
        if len(found) > 1:
            raise BadInput({"plane": ["Several planes have a dead letter of this id: name one."]})
        return found[0]
