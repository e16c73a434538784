"""Callbacks: one decision from outside, by a token."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any

from django_durable.authoring.callback import Callback, decided, make_token
from django_durable.authoring.operations.base import Duration, operation
from django_durable.authoring.operations.waiting import Waiting
from django_durable.engine.transitions.wait import Terms
from django_durable.errors import CallbackTimeout
from django_durable.models.columns import check_name
from django_durable.payloads import decode


class Callbacks(Waiting):
    """``ctx.create_callback``, and the waits for what it returned."""

    @operation
    def create_callback(self, name: str = "") -> Callback:
        """A callback to hand out, by its ``token`` or ``url``; it is decided once, from any process."""
        check_name(name, "callback name", empty=True)
        execution_id = self._session.claim.id
        position, token = self._instant(
            "callback", name, lambda position: make_token(execution_id, position, secrets.token_hex(8))
        )
        return Callback(name, position, token, self._wait_for_callback)

    @operation
    def _wait_for_callback(self, callback: Callback, timeout: Duration | None, until: datetime | None) -> Any:
        name = callback.label
        _position, encoded = self._receive(
            "callback-wait",
            name,
            timeout,
            until,
            lambda position: CallbackTimeout(f"callback {name!r} was not completed in time", position=position),
            lambda _position: [callback.channel],
            lambda _position, _until: Terms(record=decided),
        )
        return decode(encoded)
