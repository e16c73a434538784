"""Fields of bodies: JSON as it is. The framework's own would take a number for a text and a text for a number."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from django_durable.durations import seconds
from django_durable.models.columns import NAME_LENGTH, check_name

__all__ = ["Flag", "Moment", "Name", "Text", "Value", "Whole"]


class Text(serializers.CharField):
    """A text, also an empty one, as it is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_blank": True, "trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class Name(Text):
    """A name, key or actor: what ``check_name`` lets pass."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_blank": False, "max_length": NAME_LENGTH, **options})

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            return check_name(text, "this", maximum=self.max_length or NAME_LENGTH)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None


class Whole(serializers.IntegerField):
    """A whole number."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return int(super().to_internal_value(data))


class Flag(serializers.BooleanField):
    """``true`` or ``false``."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


@extend_schema_field({"description": "Any JSON value."})
class Value(serializers.JSONField):
    """Any JSON value. Going out it is plain or tagged, or a text with its type and size."""

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(
    {
        "oneOf": [{"type": "string", "format": "date-time"}, {"type": "number", "minimum": 0, "maximum": 1e9}],
        "description": "A time with its zone, or seconds from now.",
    }
)
class Moment(serializers.Field):  # type: ignore[type-arg]
    """A time with its zone in ISO 8601, or seconds from now."""

    def to_internal_value(self, data: Any) -> datetime | float:
        if isinstance(data, str):
            return self._time(data)
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise serializers.ValidationError("must be a time in ISO 8601, or a number of seconds")
        try:
            return seconds(data, name="this")
        except (TypeError, ValueError) as error:
            raise serializers.ValidationError(str(error)) from None

    @staticmethod
    def _time(text: str) -> datetime:
        try:
            found = parse_datetime(text)
        except ValueError:
            found = None
        if found is None:
            raise serializers.ValidationError("is no time in ISO 8601")
        if found.utcoffset() is None:
            raise serializers.ValidationError("has no time zone; add Z, or an offset like +02:00")
        return found

    def to_representation(self, value: Any) -> Any:
        return value
