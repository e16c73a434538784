"""HintViewSet: the work in flight, and another chance for what is parked."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.models import DispatchHint
from django_durable.operators.requeue import requeue
from django_durable.planes.places import Place
from django_durable.planes.selection import spine_alias
from django_durable.rest.bodies import ReasonBody
from django_durable.rest.filters import HintFilter, check_parameters, filtered
from django_durable.rest.paging import Listing
from django_durable.rest.representations import Hint
from django_durable.rest.schemas import ID, PAGED, documented, filters_of, page_of
from django_durable.rest.view import DurableViewSet

__all__ = ["HintViewSet"]

COLUMNS = (
    "id",
    "kind",
    "state",
    "execution_id",
    "position",
    "plane",
    "revision",
    "epoch",
    "queue",
    "priority",
    "due_at",
    "owner",
    "token",
    "failures",
    "category",
)
LISTING = Listing(columns=COLUMNS, shown=Hint, descending=False)


class HintViewSet(DurableViewSet):
    """Of every tenant: the rows do not say whose they are."""

    verbs: ClassVar[dict[str, str]] = {"list": "view_hints", "requeue": "requeue"}

    @documented(
        "List dispatch hints, for operators of the whole installation.",
        page_of(Hint, "HintPage"),
        parameters=[*PAGED, *filters_of(HintFilter)],
    )
    def list(self, request: Request) -> Response:
        self.check_whole_installation()
        check_parameters(request, HintFilter)
        filtered(HintFilter, request, DispatchHint.objects.none())
        page = LISTING.page(
            request,
            [Place(plane="", alias=spine_alias())],
            lambda place: filtered(HintFilter, request, DispatchHint.objects.using(place.alias).all()),
            whole=False,
            read=read,
        )
        return Response(page)

    @documented("Give a parked hint another chance.", Hint, body=ReasonBody, parameters=[ID], refusals=[404, 409])
    @action(detail=True, methods=["post"])
    def requeue(self, request: Request, pk: str) -> Response:
        self.check_whole_installation()
        body = self.body(ReasonBody)
        hint = requeue(pk, actor=self.actor, reason=body["reason"])
        return Response(Hint(read({name: getattr(hint, name) for name in COLUMNS})).data)


def read(row: dict[str, Any]) -> dict[str, Any]:
    """A hint as it goes out, without the token that its holder works under."""
    leased = row["token"] is not None
    return {
        **row,
        "kind": DispatchHint.Kind(row["kind"]).name.lower(),
        "state": "leased" if leased else DispatchHint.State(row["state"]).name.lower(),
        "position": None if row["position"] < 0 else row["position"],
    }
