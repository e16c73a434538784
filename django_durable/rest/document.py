"""DocumentViewSet: the OpenAPI document of these addresses."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any, ClassVar

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from rest_framework.request import Request
from rest_framework.response import Response

import django_durable
from django_durable.rest.view import DurableViewSet

__all__ = ["DocumentViewSet", "document"]

MEDIA_TYPE = "application/vnd.oai.openapi+json"
URLCONF = "django_durable.rest.urls"
SETTINGS: dict[str, Any] = {
    "TITLE": "django-durable",
    "DESCRIPTION": "Durable executions: start them, look at them, act on them.",
    "VERSION": django_durable.__version__,
    "COMPONENT_SPLIT_REQUEST": False,
    "ENFORCE_NON_BLANK_FIELDS": True,
    "SCHEMA_PATH_PREFIX": "",
    "SCHEMA_PATH_PREFIX_TRIM": False,
    "PREPROCESSING_HOOKS": [],
    "POSTPROCESSING_HOOKS": [],
    "ENUM_NAME_OVERRIDES": {},
    "SERVERS": [],
    "TAGS": [],
}
making = threading.Lock()


@lru_cache(maxsize=8)
def document(server: str = "/") -> dict[str, Any]:
    """The document, whatever the project's own is made with. ``server``: below which address they are."""
    generator: Any = SchemaGenerator
    # The settings are the process's: two documents at a time would be made with each other's.
    with making, patched_settings({**SETTINGS, "SERVERS": [{"url": server}]}):
        made: dict[str, Any] = generator(urlconf=URLCONF).get_schema(request=None, public=True)
    for name, schema in made["components"]["schemas"].items():
        if name.endswith("Body"):
            schema["additionalProperties"] = False
    made["components"]["schemas"]["CallbackBody"]["not"] = {"required": ["value", "error"]}
    return made


class DocumentViewSet(DurableViewSet):
    """Made once a process."""

    verbs: ClassVar[dict[str, str]] = {"list": "view"}

    schema = None  # type: ignore[assignment]

    def list(self, request: Request) -> Response:
        server = request.path.removesuffix("schema/").rstrip("/") or "/"
        return Response(document(server), content_type=MEDIA_TYPE)
