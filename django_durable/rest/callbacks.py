"""CallbackViewSet: decide a callback. Whoever has the token may, and nobody is asked who that is."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.permissions import AllowAny, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.operators.callback import complete_callback, fail_callback
from django_durable.rest.bodies import CallbackBody
from django_durable.rest.representations import CallbackDecided
from django_durable.rest.schemas import documented
from django_durable.rest.view import DurableViewSet

__all__ = ["CallbackViewSet"]


class CallbackViewSet(DurableViewSet):
    """The address is ``Callback.url``."""

    verbs: ClassVar[dict[str, str]] = {}

    def get_authenticators(self) -> list[Any]:
        """None: nobody signs in, so no session's cookie counts and no CSRF token is due."""
        return []

    def get_permissions(self) -> list[BasePermission]:
        """The token is the credential."""
        return [AllowAny()]

    def scope_of_throttle(self) -> str:
        """Guesses are counted by themselves."""
        return "durable_callback"

    @documented(
        "Complete or fail a callback. The first decision counts; a later one is told so.",
        CallbackDecided,
        body=CallbackBody,
        refusals=[404, 409],
        auth=[],
    )
    def create(self, request: Request, token: str) -> Response:
        body = self.body(CallbackBody)
        if "error" in body:
            decided = self.checked(lambda: fail_callback(token, body["error"]), "error")
        else:
            decided = self.checked(lambda: complete_callback(token, body.get("value")), "value")
        return Response(CallbackDecided({"decided": decided}).data)
