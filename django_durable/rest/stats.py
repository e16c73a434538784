"""StatsViewSet: how much there is to do, and how long it has been waiting."""

from __future__ import annotations

from dataclasses import asdict
from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.operators.stats import measure
from django_durable.rest.representations import Stats
from django_durable.rest.schemas import documented, single
from django_durable.rest.view import DurableViewSet

__all__ = ["StatsViewSet"]


class StatsViewSet(DurableViewSet):
    """Cheap enough to be asked every few seconds."""

    verbs: ClassVar[dict[str, str]] = {"list": "view"}

    @documented("The numbers of the whole installation.", single(Stats), operation_id="stats_retrieve")
    def list(self, request: Request) -> Response:
        self.check_whole_installation()
        measured = measure()
        away = [one.place.label for one in measured.away]
        found = {**asdict(measured.total), "unavailable": away}
        if len(measured.planes) + len(away) > 1:
            found["planes"] = {name: asdict(stats) for name, stats in measured.planes.items()}
        return Response(Stats(found).data)
