"""How instances of one class are written and read: Enums, dataclasses, foreign classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum, Flag
from typing import Any

from django_durable.errors import UndecodableValue
from django_durable.payloads.refusal import Refusal

__all__ = ["ValueType", "enum_type", "is_storable_dataclass", "record_type"]


@dataclass(frozen=True, slots=True)
class ValueType:
    """A registered class: its stored name, and the two ways."""

    name: str
    cls: type
    write: Callable[[Any], Any]
    """Gives what is stored in the instance's place: any storable value."""
    read: Callable[[Any], Any]
    fields: tuple[str, ...] | None = None
    """The fields of a dataclass, ``None`` for other classes."""


def enum_type(cls: type[Enum], name: str) -> ValueType:
    """Members by name, which stays when a value is corrected; flags by number, since combinations have no name."""
    if issubclass(cls, Flag):
        return ValueType(name, cls, lambda member: member._value_, cls)
    members = cls.__members__

    def write(member: Enum) -> str:
        if members.get(member._name_) is not member:
            raise Refusal(f"is no declared member of {cls.__name__}")
        return member._name_

    def read(payload: Any) -> Enum:
        if payload not in members:
            raise UndecodableValue(f"{name} has no member of the stored name any more; add it again, as an alias")
        return members[payload]

    return ValueType(name, cls, write, read)


def is_storable_dataclass(cls: type) -> bool:
    """Whether its fields are all that an instance consists of: no base with contents of its own."""
    return is_dataclass(cls) and cls.__new__ is object.__new__


def record_type(cls: type, name: str) -> ValueType:
    """A dataclass, by its fields."""
    known = {field.name: field for field in fields(cls)}

    def write(value: Any) -> dict[str, Any]:
        return {field: getattr(value, field) for field in known}

    def read(payload: Any) -> Any:
        if not isinstance(payload, dict):
            raise TypeError("not an object")
        if strange := payload.keys() - known.keys():
            raise UndecodableValue(
                f"{name} has no field {min(strange)[:80]!r} any more; give it back to read old values"
            )
        value: Any = object.__new__(cls)
        for field in known.values():
            # Past __init__ and frozen: the fields as they were, not as __post_init__ would make them today.
            object.__setattr__(
                value, field.name, payload[field.name] if field.name in payload else default_of(field, name)
            )
        return value

    return ValueType(name, cls, write, read, tuple(known))


def default_of(field: Field[Any], name: str) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    raise UndecodableValue(f"the stored {name} is older than the field {field.name!r}; give the field a default")
