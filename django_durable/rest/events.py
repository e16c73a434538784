"""EventViewSet: tell a tenant's executions that something has happened."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.events import publish
from django_durable.rest.bodies import EventBody
from django_durable.rest.idempotency import idempotency_key, refuse_other_event
from django_durable.rest.representations import Event
from django_durable.rest.schemas import IDEMPOTENT, documented
from django_durable.rest.view import DurableViewSet

__all__ = ["EventViewSet"]


class EventViewSet(DurableViewSet):
    """For the request's tenant."""

    verbs: ClassVar[dict[str, str]] = {"create": "publish"}

    @documented(
        "Publish an event to the tenant's executions.",
        Event,
        body=EventBody,
        status=201,
        parameters=[IDEMPOTENT],
        refusals=[404, 409, 422],
    )
    def create(self, request: Request) -> Response:
        body = self.body(EventBody)
        name, payload, tenant = body["name"], body["payload"], self.scope.tenant or None
        header = idempotency_key(request)
        key = body.get("dedup_key") or header
        event = self.checked(lambda: publish(name, payload, tenant=tenant, dedup_key=key), "payload")
        if not body.get("dedup_key") and header is not None:
            refuse_other_event(self.scope.using, event, payload)
        return Response(Event({"event_id": event, "name": name}).data, status=201)
