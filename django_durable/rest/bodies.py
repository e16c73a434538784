"""Bodies: what is sent to each address."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from django_durable.engine.transitions.hint_lease import LEVELS
from django_durable.rest.fields import Flag, Moment, Name, Text, Value, Whole

__all__ = [
    "CallbackBody",
    "CancelBody",
    "DecideBody",
    "EventBody",
    "ForkBody",
    "ReasonBody",
    "SignalBody",
    "StartBody",
    "UpdateBody",
]

LONGEST_WAIT = 30
"""Seconds that one request may wait: a worker of the web server is busy meanwhile."""


class Body(serializers.Serializer[Any]):
    """Members by name; those that are not here are refused."""


class StartBody(Body):
    """``POST executions/``"""

    workflow = Name(help_text="The workflow's name, like shop.fulfil.")
    input = serializers.DictField(
        child=Value(allow_null=True), required=False, default=dict, help_text="Its arguments by name."
    )
    key = Name(required=False, allow_null=True, help_text="One execution a key. Without it, Idempotency-Key is.")
    version = Name(required=False, allow_null=True, max_length=64, help_text="By default the newest.")
    tags = serializers.DictField(child=Value(), required=False, help_text="Texts, whole numbers, true and false.")
    run_after = Moment(required=False, allow_null=True)
    priority = Whole(required=False, allow_null=True, min_value=min(LEVELS), max_value=max(LEVELS))
    correlation_id = Name(required=False, allow_blank=True)


class SignalBody(Body):
    """``POST executions/{id}/signal/``"""

    name = Name()
    payload = Value(required=False, allow_null=True, default=None)
    dedup_key = Name(required=False, allow_null=True, help_text="Without it, Idempotency-Key is.")


class UpdateBody(SignalBody):
    """``POST executions/{id}/update/``"""

    timeout = serializers.FloatField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=LONGEST_WAIT,
        help_text="Wait so many seconds for the reply.",
    )


class EventBody(SignalBody):
    """``POST events/``"""


class ReasonBody(Body):
    """The body of a verb that takes nothing else."""

    reason = Text(required=False, default="", max_length=2000, help_text="Kept with your name.")


class CancelBody(ReasonBody):
    """``POST executions/{id}/cancel/``"""

    compensate = Flag(required=False, default=True, help_text="Run its undo steps first.")


class DecideBody(ReasonBody):
    """``POST executions/{id}/decide/``"""

    name = Name()
    approved = Flag()
    data = Value(required=False, allow_null=True, default=None, help_text="What the workflow gets with the answer.")  # type: ignore[assignment]


class ForkBody(ReasonBody):
    """``POST executions/{id}/fork/``"""

    from_position = Whole(min_value=0, max_value=2_147_483_646, help_text="The first position to do again.")
    version = Name(required=False, allow_null=True, max_length=64)


class CallbackBody(Body):
    """``POST callbacks/{token}/``: one of the two."""

    value = Value(required=False, allow_null=True, help_text="Completes it; null by default.")
    error = Text(required=False, help_text="Fails it: the wait raises CallbackFailed with this text.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "error" in attrs and "value" in attrs:
            raise serializers.ValidationError("give one of value and error")
        return attrs
