"""problem: every error as problem details (RFC 9457), with a stable ``code`` and, for wrong input, ``errors``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from django_durable.errors import (
    DurableError,
    ExecutionNotFound,
    PayloadTooLarge,
    PlaneUnavailable,
    QueueFull,
    ScheduleNotFound,
    TenantRequired,
    UndecodableValue,
    UnknownTenant,
    UnknownWorkflow,
    UnserializableValue,
    UpdateRejected,
)
from django_durable.payloads import to_plain

__all__ = ["MEDIA_TYPE", "BadInput", "ReusedKey", "problem_of"]

MEDIA_TYPE: Final = "application/problem+json"
STATUSES: Final[tuple[tuple[tuple[type[DurableError], ...], int], ...]] = (
    ((ExecutionNotFound, ScheduleNotFound, UnknownWorkflow, UnknownTenant), 404),
    ((PlaneUnavailable,), 503),
    ((PayloadTooLarge,), 413),
    ((UnserializableValue, UndecodableValue, TenantRequired), 400),
    ((UpdateRejected,), 422),
    ((QueueFull,), 429),
    ((DurableError,), 409),
)
RETRY_AFTER: Final = "5"
"""Seconds until an outage may be over."""

logger = logging.getLogger("django_durable.rest")


class BadInput(Exception):
    """Input that cannot be used. ``errors`` is by the place in the body."""

    def __init__(self, errors: Mapping[str, Any], *, code: str = "invalid", status: int = 400) -> None:
        self.errors = errors
        self.code = code
        self.status = status
        super().__init__(code)


class ReusedKey(Exception):
    """An ``Idempotency-Key`` came with another body than the first time."""


def problem_of(error: Exception, path: str) -> Response | None:
    """The answer to an error; ``None`` for a bug, which is to be seen as one."""
    if isinstance(error, exceptions.APIException):
        return _of_framework(error)
    if isinstance(error, BadInput):
        return _problem(error.status, error.code, "Some of the input cannot be used.", errors=error.errors)
    if isinstance(error, ReusedKey):
        return _problem(422, "idempotency_key_reused", str(error))
    if isinstance(error, ValidationError):
        return _problem(422, "update_rejected", "; ".join(error.messages), errors=_by_field(error))
    if isinstance(error, DurableError):
        return _of_engine(error, path)
    if isinstance(error, OperationalError | InterfaceError):
        return _unavailable(error, path, "plane_unavailable", "The database cannot be reached right now.")
    if isinstance(error, PermissionDenied):
        return _problem(403, "permission_denied", str(error) or "You may not do this.")
    if isinstance(error, Http404):
        return _problem(404, "not_found", "There is nothing here.")
    return None


def _of_engine(error: DurableError, path: str) -> Response:
    status = next(status for classes, status in STATUSES if isinstance(error, classes))
    if isinstance(error, PlaneUnavailable):
        # Its text may name databases: that is for the log.
        return _unavailable(
            error, path, error.code, "The data plane cannot be reached right now; nothing was changed."
        )
    actor = getattr(error, "actor", None)
    return _problem(status, error.code, str(error), **({"actor": actor} if actor else {}))


def _unavailable(error: Exception, path: str, code: str, detail: str) -> Response:
    logger.warning("%s: the database cannot be reached (%s)", path, type(error).__name__)
    response = _problem(503, code, detail)
    response["Retry-After"] = RETRY_AFTER
    return response


def _of_framework(error: exceptions.APIException) -> Response:
    if isinstance(error, exceptions.ValidationError):
        return _problem(400, "invalid", "Some of the input cannot be used.", errors=error.detail)
    codes = error.get_codes()
    response = _problem(error.status_code, codes if isinstance(codes, str) else "error", str(error.detail))
    if (challenge := getattr(error, "auth_header", None)) is not None:
        response["WWW-Authenticate"] = challenge
    if (wait := getattr(error, "wait", None)) is not None:
        response["Retry-After"] = str(int(wait) + 1)
    return response


def _by_field(error: ValidationError) -> Mapping[str, Any]:
    return error.message_dict if hasattr(error, "error_dict") else {"payload": error.messages}


def _problem(status: int, code: str, detail: str, **more: Any) -> Response:
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        **more,
    }
    # Through plain values: a lone surrogate in a name must not break the answer that refuses it.
    return Response(to_plain(_texts(body)), status=status, content_type=MEDIA_TYPE)


def _texts(value: Any) -> Any:
    """Without subclasses of str, which the framework's errors are."""
    if isinstance(value, Mapping):
        return {str(name): _texts(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_texts(member) for member in value]
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)
