"""DurableViewSet: what every address shares. Who asks, for which tenant, how often, and how errors go out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final, TypeVar

from django.urls import reverse
from django.utils.http import parse_etags
from django.utils.module_loading import import_string
from drf_spectacular.openapi import AutoSchema
from rest_framework import exceptions, serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle
from rest_framework.viewsets import ViewSet

from django_durable.conf import config
from django_durable.models import Execution
from django_durable.operators.permissions import may
from django_durable.operators.scope import Scope, scope_of
from django_durable.operators.values import Values
from django_durable.rest.parser import BodyParser
from django_durable.rest.permission import VerbPermission
from django_durable.rest.problem import BadInput, problem_of
from django_durable.rest.throttle import ScopedThrottle

__all__ = ["DurableViewSet"]

T = TypeVar("T")
FORMS: Final = ("plain", "tagged")


class EveryDatabase(frozenset[str]):
    """Every alias: no request is put into a transaction, since a verb is one itself and a wait must be in none."""

    def __contains__(self, alias: object) -> bool:
        return True


class OnlyJson(BaseContentNegotiation):
    """There is one representation; an ``Accept`` for another one gets it all the same."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """By the body's type; without one the body is JSON too."""
        content_type = request.content_type.partition(";")[0].strip().lower()
        return parsers[0] if content_type in ("", BodyParser.media_type) else None

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """JSON."""
        return renderers[0], renderers[0].media_type


class DurableViewSet(ViewSet):
    """``verbs`` names the verb of each action in the table of permissions; an action without one is denied."""

    verbs: ClassVar[Mapping[str, str]] = {}
    renderer_classes = (JSONRenderer,)
    parser_classes = (BodyParser,)
    content_negotiation_class = OnlyJson
    metadata_class = None
    lookup_value_regex = "[^/]+"
    schema = AutoSchema()
    throttle_scope: str

    @classmethod
    def as_view(cls, actions: Any = None, **initkwargs: Any) -> Any:
        """The view, outside ``ATOMIC_REQUESTS``."""
        view: Any = super().as_view(actions, **initkwargs)
        view._non_atomic_requests = EveryDatabase()
        return view

    # -- who asks ----------------------------------------------------------------------------------------------

    def get_authenticators(self) -> list[Any]:
        """``REST_AUTHENTICATION_CLASSES``, or the project's."""
        chosen = config().rest_authentication_classes
        return [made() for made in self._classes(chosen, api_settings.DEFAULT_AUTHENTICATION_CLASSES)]

    def get_permissions(self) -> list[BasePermission]:
        """``REST_PERMISSION_CLASSES``, or the table of verbs."""
        return [made() for made in self._classes(config().rest_permission_classes, [VerbPermission])]

    def get_throttles(self) -> list[BaseThrottle]:
        """``REST_THROTTLE_CLASSES``, or by scope."""
        self.throttle_scope = self.scope_of_throttle()
        return [made() for made in self._classes(config().rest_throttle_classes, [ScopedThrottle])]

    def scope_of_throttle(self) -> str:
        """Reading and writing are counted apart."""
        return "durable_read" if self.request.method in ("GET", "HEAD") else "durable_write"

    @staticmethod
    def address(execution: Execution[Any]) -> str:
        """Where an execution is."""
        return reverse("django_durable:execution-detail", args=[execution.pk])

    @staticmethod
    def _classes(chosen: Any, default: Any) -> list[Any]:
        named = default if chosen is None else chosen
        return [import_string(one) if isinstance(one, str) else one for one in named]

    def permission_denied(self, request: Request, message: str | None = None, code: str | None = None) -> Any:
        """Who has not signed in gets 401, whatever the first way to sign in is."""
        if not request.successful_authenticator and not getattr(request.user, "is_authenticated", False):
            raise exceptions.NotAuthenticated
        raise exceptions.PermissionDenied(message, code)

    @property
    def payloads(self) -> bool:
        """Whether the user may see values."""
        return bool(self.request.user) and may(self.request.user, "view_payload")

    @property
    def actor(self) -> Any:
        """Whom an act is attributed to. Raises ``NotAuthenticated`` for nobody."""
        if not getattr(self.request.user, "is_authenticated", False):
            raise exceptions.NotAuthenticated
        return self.request.user

    @cached_property
    def scope(self) -> Scope:
        """The tenant that the request is for."""
        return scope_of(self.request._request)

    def check_whole_installation(self) -> None:
        """Raise ``PermissionDenied`` for a request of one tenant: these rows do not say whose they are."""
        if self.scope.tenant is not None:
            raise exceptions.PermissionDenied("This is for operators of the whole installation.")

    # -- what comes in -----------------------------------------------------------------------------------------

    def body(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The checked body. Raises ``ValidationError`` that names what is wrong, unknown members too."""
        data = self.request.data
        given = serializer(data=data)
        given.is_valid(raise_exception=True)
        unknown = sorted(set(data) - set(given.fields))
        if unknown:
            raise BadInput({name: ["There is no such member."] for name in unknown})
        found: dict[str, Any] = given.validated_data
        return found

    def checked(self, call: Callable[[], T], place: str = "detail") -> T:
        """What the call returns; a value that it refuses is the client's mistake."""
        from django_durable.errors import DurableError

        try:
            return call()
        except DurableError:
            raise
        except (TypeError, ValueError) as error:
            raise BadInput({place: [str(error)]}) from error

    # -- what goes out -----------------------------------------------------------------------------------------

    @cached_property
    def values(self) -> Values:
        """How this user sees stored values: ``?values=tagged`` keeps their types."""
        form = self.request.query_params.get("values", "plain")
        if form not in FORMS:
            raise BadInput({"values": [f"must be one of {', '.join(FORMS)}"]})
        return Values(payloads=self.payloads, tagged=form == "tagged")

    def conditional(self, data: Any, serializer: type[serializers.Serializer[Any]]) -> Response:
        """The data with its ETag, or 304 where the client has it already."""
        shown = serializer(data).data
        digest = hashlib.sha256(JSONRenderer().render(shown)).hexdigest()[:32]
        etag = f'"{digest}"'
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
        known = [one.removeprefix("W/") for one in parse_etags(self.request.headers.get("If-None-Match", ""))]
        if etag in known or "*" in known:
            return Response(status=304, headers=headers)
        return Response(shown, headers=headers)

    def handle_exception(self, exc: Exception) -> Response:
        """Problem details for what was refused; a bug is raised."""
        if isinstance(exc, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
            exc.status_code = 401
            exc.auth_header = self._challenge()  # type: ignore[union-attr]
        answer = problem_of(exc, self.request.path)
        if answer is None:
            raise exc
        answer.exception = True
        return answer

    def _challenge(self) -> str:
        """How to sign in, which a 401 has to say."""
        offered = (one.authenticate_header(self.request) for one in self.get_authenticators())
        return next((challenge for challenge in offered if challenge), 'Session realm="durable"')
