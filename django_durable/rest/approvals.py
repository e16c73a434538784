"""ApprovalViewSet: what executions ask people for. The answer is a verb of the execution."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.models import ApprovalRequest
from django_durable.operators.values import Values
from django_durable.rest.filters import ApprovalFilter, check_parameters, filtered
from django_durable.rest.paging import Listing
from django_durable.rest.representations import Approval
from django_durable.rest.schemas import PAGED, VALUES, documented, filters_of, page_of
from django_durable.rest.view import DurableViewSet

__all__ = ["ApprovalViewSet"]

COLUMNS = (
    "id",
    "execution_id",
    "position",
    "name",
    "prompt",
    "permission",
    "encoded_data",
    "requested_at",
    "expires_at",
    "execution__workflow",
    "execution__tenant",
)
LISTING = Listing(columns=COLUMNS, shown=Approval, by="requested_at", descending=False)


class ApprovalViewSet(DurableViewSet):
    """Oldest first."""

    verbs: ClassVar[dict[str, str]] = {"list": "view_approvals"}

    @documented(
        "List the approvals that can be decided, the oldest first.",
        page_of(Approval, "ApprovalPage"),
        parameters=[VALUES, *PAGED, *filters_of(ApprovalFilter)],
        refusals=[404],
    )
    def list(self, request: Request) -> Response:
        check_parameters(request, ApprovalFilter, "values")
        values = self.values
        filtered(ApprovalFilter, request, ApprovalRequest.objects.none())
        page = LISTING.page(
            request,
            self.scope.places(),
            lambda place: filtered(ApprovalFilter, request, self._rows(place.alias)),
            whole=self.scope.tenant is None,
            read=lambda row: read(row, values),
        )
        return Response(page)

    def _rows(self, using: str) -> Any:
        return self.scope.narrow(ApprovalRequest.objects.using(using).open(), "execution__tenant")


def read(row: dict[str, Any], values: Values) -> dict[str, Any]:
    """A request as it goes out; prompt and data are values."""
    named = {name.removeprefix("execution__"): member for name, member in row.items()}
    prompt = row["prompt"] if values.payloads else f"str, {len(row['prompt'])} characters"
    return {**named, "prompt": prompt, "data": values.value(row["encoded_data"])}
