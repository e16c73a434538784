"""PlaneViewSet: the databases that hold executions."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.operators.plane_rows import plane_rows
from django_durable.rest.representations import Plane
from django_durable.rest.schemas import documented, page_of
from django_durable.rest.view import DurableViewSet

__all__ = ["PlaneViewSet"]


class PlaneViewSet(DurableViewSet):
    """By name; none while the project has no planes."""

    verbs: ClassVar[dict[str, str]] = {"list": "view_planes"}

    @documented("List data planes, for operators of the whole installation.", page_of(Plane, "PlanePage"))
    def list(self, request: Request) -> Response:
        self.check_whole_installation()
        rows = plane_rows()
        away = [row["name"] for row in rows if row["reason"]]
        return Response({"next": None, "unavailable": away, "results": Plane(rows, many=True).data})
