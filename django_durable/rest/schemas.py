"""documented: what an action takes and answers, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from django_filters import rest_framework as filters
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from django_durable.rest.idempotency import HEADER
from django_durable.rest.paging import CURSOR, LARGEST_PAGE, PAGE, SIZE
from django_durable.rest.problem import MEDIA_TYPE
from django_durable.rest.representations import Problem

__all__ = ["ID", "IDEMPOTENT", "IF_NONE_MATCH", "PAGED", "VALUES", "documented", "filters_of", "page_of", "single"]

F = TypeVar("F", bound=Callable[..., Any])
Serializer = type[serializers.Serializer[Any]]

REFUSALS: Final = {
    400: "Some of the input cannot be used.",
    401: "Sign in first.",
    403: "The user may not do this.",
    404: "Not there, or not this tenant's.",
    405: "The address does not have this method.",
    409: "The execution's status, or somebody who was first, does not allow it.",
    413: "The body is too large.",
    415: "The body is no JSON.",
    422: "Refused for what it says.",
    429: "Too many requests.",
    503: "A database cannot be reached right now.",
}
ALWAYS: Final = (400, 401, 403, 405, 429, 503)
OF_BODIES: Final = (413, 415)

SOME: Final = {"type": "string", "minLength": 1}
ID: Final = OpenApiParameter("id", UUID, OpenApiParameter.PATH)
VALUES: Final = OpenApiParameter(
    "values", str, enum=["plain", "tagged"], description="Values as plain JSON, or with their types."
)
PAGED: Final = [
    OpenApiParameter(CURSOR, SOME, description="Where the page begins: from the page before."),
    OpenApiParameter(SIZE, {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE}),
]
IDEMPOTENT: Final = OpenApiParameter(
    HEADER,
    {"type": "string", "minLength": 1, "maxLength": 255},
    OpenApiParameter.HEADER,
    description="Makes a repeated request do one thing.",
)
IF_NONE_MATCH: Final = OpenApiParameter(
    "If-None-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag of an earlier answer: 304 while it is the same.",
)


def documented(
    summary: str,
    answer: Serializer | OpenApiResponse | None,
    *,
    body: Serializer | None = None,
    status: int = 200,
    more: Mapping[int, Any] | None = None,
    refusals: Sequence[int] = (),
    parameters: Sequence[Any] = (),
    **options: Any,
) -> Callable[[F], F]:
    """The action's part of the document."""
    named = sorted({*ALWAYS, *refusals, *(OF_BODIES if body is not None else ())})
    responses: dict[Any, Any] = {status: answer, **(more or {})}
    for refusal in named:
        responses[(refusal, MEDIA_TYPE)] = OpenApiResponse(Problem, description=REFUSALS[refusal])
    describe = extend_schema(
        summary=summary,
        request=body,
        responses=responses,
        parameters=list(parameters),
        filters=False,
        **options,
    )

    def decorate(function: F) -> F:
        # Whatever DEFAULT_SCHEMA_CLASS of the project is: the one that this document is made with.
        known: Any = function
        known.kwargs = {**getattr(function, "kwargs", {}), "schema": AutoSchema}
        return describe(function)

    return decorate


def page_of(row: Serializer, name: str) -> Serializer:
    """A page of these rows."""
    fields: dict[str, Any] = {
        "next": serializers.URLField(allow_null=True, help_text="Address of the next page."),
        "unavailable": serializers.ListField(
            child=serializers.CharField(), help_text="Planes that gave no answer, for operators of all of them."
        ),
        "results": row(many=True),
    }
    return single(type(name, (serializers.Serializer,), {**fields, "__doc__": "A page of a list."}))


def single(serializer: Serializer) -> Serializer:
    """The serializer for an action that is called ``list`` and answers with one object."""
    made: Any = forced_singular_serializer
    singular: Serializer = made(serializer)
    return singular


def filters_of(kind: type[filters.FilterSet]) -> list[OpenApiParameter]:
    """The filters of a list, as parameters."""
    return [_parameter(name, one) for name, one in kind.base_filters.items()]


def _parameter(name: str, one: filters.Filter) -> OpenApiParameter:
    told = str(one.extra.get("help_text") or "")
    choices = [str(value) for value, _label in one.extra.get("choices", ())]
    if isinstance(one, filters.BaseCSVFilter):
        kind: dict[str, Any] = {"type": "array", "items": {"type": "string", "enum": choices}}
        return OpenApiParameter(name, kind, description=told, explode=False)
    if isinstance(one, filters.UUIDFilter):
        return OpenApiParameter(name, UUID, description=told)
    if isinstance(one, filters.IsoDateTimeFilter):
        return OpenApiParameter(name, datetime, description=told)
    if choices:
        return OpenApiParameter(name, str, description=told, enum=choices)
    return OpenApiParameter(name, SOME, description=told)
