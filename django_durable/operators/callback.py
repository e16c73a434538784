"""complete_callback, fail_callback: decide a callback by its token."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async

from django_durable.authoring.callback import FAILED, VALUE, read_token
from django_durable.authoring.one_database import check_transaction
from django_durable.authoring.place import refuse_in_body
from django_durable.engine.messages import post
from django_durable.engine.reach import reaching
from django_durable.payloads import encode
from django_durable.planes.location import locate


def complete_callback(token: str, value: Any = None) -> bool:
    """Complete a callback, in the caller's transaction; ``False`` where it had been decided before.

    The token is the credential, whoever calls. Raises ``ExecutionNotFound`` for one that was not made here,
    ``ExecutionClosed`` where the execution has ended without a decision, ``UnserializableValue``.
    """
    refuse_in_body("complete_callback()", "put it into a step")
    return _decide(token, {VALUE: value})


def fail_callback(token: str, message: str) -> bool:
    """Fail a callback: its wait raises ``CallbackFailed(message)``. Otherwise as ``complete_callback``."""
    refuse_in_body("fail_callback()", "put it into a step")
    if not isinstance(message, str):
        raise TypeError(f"message must be a str, not {type(message).__name__}")
    return _decide(token, {FAILED: message})


def _decide(token: str, decision: dict[str, Any]) -> bool:
    address = read_token(token)
    encoded = encode(decision, where="value of the callback")
    execution = locate(address.execution_id)
    check_transaction(execution.using)
    with reaching(execution.using):
        return post(execution.using, execution.pk, address.channel, encoded, dedup_key="decided").is_new


acomplete_callback = sync_to_async(complete_callback)
afail_callback = sync_to_async(fail_callback)
