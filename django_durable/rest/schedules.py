"""ScheduleViewSet: what is started when, and what operators do about it."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.errors import PlaneUnavailable, ScheduleNotFound
from django_durable.models import Schedule
from django_durable.operators.schedules import verbs as operators
from django_durable.operators.schedules.trigger import trigger
from django_durable.planes.places import Place, ask
from django_durable.rest import representations
from django_durable.rest.bodies import ReasonBody
from django_durable.rest.filters import ScheduleFilter, check_parameters, filtered
from django_durable.rest.paging import Listing
from django_durable.rest.representations import Triggered
from django_durable.rest.schemas import ID, PAGED, documented, filters_of, page_of
from django_durable.rest.view import DurableViewSet

__all__ = ["ScheduleViewSet"]

COLUMNS = tuple(name for name in map(str, representations.Schedule().fields) if name != "plane")
LISTING = Listing(columns=COLUMNS, shown=representations.Schedule)


class ScheduleViewSet(DurableViewSet):
    """Newest first. Arguments are not shown: they are values of the executions."""

    verbs: ClassVar[dict[str, str]] = {
        "list": "view_schedules",
        "pause": "schedule",
        "resume": "schedule",
        "trigger": "schedule",
    }

    @documented(
        "List schedules, the newest first.",
        page_of(representations.Schedule, "SchedulePage"),
        parameters=[*PAGED, *filters_of(ScheduleFilter)],
        refusals=[404],
    )
    def list(self, request: Request) -> Response:
        check_parameters(request, ScheduleFilter)
        filtered(ScheduleFilter, request, Schedule.objects.none())
        page = LISTING.page(
            request,
            self.scope.places(),
            lambda place: filtered(ScheduleFilter, request, self._rows(place)),
            whole=self.scope.tenant is None,
        )
        return Response(page)

    @documented(
        "Let its times pass until it is resumed.",
        representations.Schedule,
        body=ReasonBody,
        parameters=[ID],
        refusals=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, pk: str) -> Response:
        body, schedule = self.body(ReasonBody), self._find(pk)
        operators.pause(schedule, actor=self.actor, reason=body["reason"])
        return self._told(schedule)

    @documented(
        "Fire its times again from now on.",
        representations.Schedule,
        body=ReasonBody,
        parameters=[ID],
        refusals=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        body, schedule = self.body(ReasonBody), self._find(pk)
        operators.resume(schedule, actor=self.actor, reason=body["reason"])
        return self._told(schedule)

    @documented(
        "Start its workflow now, also while it is paused.",
        Triggered,
        body=ReasonBody,
        status=201,
        parameters=[ID],
        refusals=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def trigger(self, request: Request, pk: str) -> Response:
        body, schedule = self.body(ReasonBody), self._find(pk)
        execution = trigger(schedule, actor=self.actor, reason=body["reason"])
        answer = {"id": execution.pk, "status": execution.status, "schedule_id": schedule.pk}
        headers = {"Location": request.build_absolute_uri(self.address(execution))}
        return Response(Triggered(answer).data, status=201, headers=headers)

    def _rows(self, place: Place) -> Any:
        return self.scope.narrow(Schedule.objects.using(place.alias).all())

    def _find(self, text: str) -> Schedule:
        """On whatever place may be looked at. Raises ``ScheduleNotFound``, also for a foreign tenant's."""
        try:
            wanted = UUID(text)
        except ValueError:
            raise ScheduleNotFound(f"{text[:64]!r} is not the id of a schedule (a UUID)") from None
        answers = ask(self.scope.places(), lambda place: self._rows(place).filter(pk=wanted).first())
        found: list[Schedule] = [one for _place, one in answers.found if one is not None]
        if found:
            return found[0]
        if answers.away:
            raise PlaneUnavailable
        raise ScheduleNotFound(f"there is no schedule {wanted}")

    @staticmethod
    def _told(schedule: Schedule) -> Response:
        fresh = Schedule.objects.using(schedule.using).values(*COLUMNS).get(pk=schedule.pk)
        return Response(representations.Schedule(fresh).data)
