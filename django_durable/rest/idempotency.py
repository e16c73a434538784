"""Idempotency-Key: the same request twice does one thing, and the same key with another body is refused."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Model
from rest_framework.request import Request

from django_durable.models import EventRow, Message
from django_durable.models.columns import check_name
from django_durable.payloads import encode, same_value
from django_durable.rest.problem import BadInput, ReusedKey

__all__ = ["HEADER", "idempotency_key", "refuse_other_event", "refuse_other_message"]

HEADER: Final = "Idempotency-Key"
REUSED: Final = "this Idempotency-Key came with another body before; use a new key for a new request"


def idempotency_key(request: Request) -> str | None:
    """The header's key. Raises ``BadInput`` for one that cannot be stored."""
    text = request.headers.get(HEADER)
    if text is None:
        return None
    try:
        return check_name(text, HEADER)
    except ValueError as error:
        raise BadInput({HEADER: [str(error)]}) from None


def refuse_other_message(using: str, message: int, payload: Any) -> None:
    """Raise ``ReusedKey`` where the stored message carries something else."""
    _compare(Message, using, message, payload)


def refuse_other_event(using: str, event: int, payload: Any) -> None:
    """Raise ``ReusedKey`` where the stored event carries something else."""
    _compare(EventRow, using, event, payload)


def _compare(model: type[Model], using: str, pk: int, payload: Any) -> None:
    stored = model._base_manager.using(using).filter(pk=pk).values_list("payload", flat=True).first()
    if stored is not None and not same_value(stored, encode(payload, where="the payload")):
        raise ReusedKey(REUSED)
