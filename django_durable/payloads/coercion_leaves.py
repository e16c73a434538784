"""Single JSON values to single Python values, each by one class; nothing else is taken for them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from typing import Any, Final
from uuid import UUID

from django.db.models import Model
from django.utils.dateparse import parse_duration

from django_durable.errors import qualified_name
from django_durable.payloads.plain import to_plain
from django_durable.payloads.refs import Ref
from django_durable.payloads.refusal import Refusal
from django_durable.payloads.registry import entry_for


class Misfit(Refusal):
    """The value does not fit; like a ``Refusal`` it collects its path on the way up."""

    @classmethod
    def expected(cls, wanted: str, value: Any) -> Misfit:
        """Tells what was wanted and the kind of what came, not the value."""
        return cls(f"expected {wanted}, got {JSON_NAMES.get(type(value)) or type(value).__name__}")


JSON_NAMES: Final = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    type(None): "null",
}


def leaf(wanted: str, *kinds: type) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Make a conversion take exactly these JSON types, and any failure of it a ``Misfit``."""

    def wrap(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def coerce_leaf(value: Any) -> Any:
            if type(value) not in kinds:
                raise Misfit.expected(wanted, value)
            try:
                return convert(value)
            except (ValueError, ArithmeticError):
                raise Misfit(f"expected {wanted}, got {JSON_NAMES[type(value)]} that is none") from None

        return coerce_leaf

    return wrap


def to_decimal(value: str | int | float) -> Decimal:
    # Through the shortest text that means this float: 12.1 is the 12.1 that was sent, without binary noise.
    return Decimal(repr(value) if isinstance(value, float) else value)


def to_float(value: str | int | float) -> float:
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        raise ValueError("not a number's name")
    return float(value)


def to_timedelta(value: str | int | float) -> timedelta:
    duration = parse_duration(value) if isinstance(value, str) else timedelta(seconds=value)
    if duration is None:
        raise ValueError("not a duration")
    return duration


LEAVES: Final[dict[type, Callable[[Any], Any]]] = {
    type(None): leaf("null", type(None))(lambda value: value),
    bool: leaf("true or false", bool)(lambda value: value),
    int: leaf("an integer", int)(lambda value: value),
    float: leaf("a number", float, int, str)(to_float),
    str: leaf("a string", str)(lambda value: value),
    Decimal: leaf("a decimal number as string or number", str, int, float)(to_decimal),
    UUID: leaf("a UUID", str)(UUID),
    datetime: leaf("an ISO 8601 date and time", str)(datetime.fromisoformat),
    date: leaf("an ISO 8601 date", str)(date.fromisoformat),
    time: leaf("an ISO 8601 time", str)(time.fromisoformat),
    timedelta: leaf("a duration in seconds or ISO 8601", str, int, float)(to_timedelta),
    bytes: leaf("base64", str)(lambda value: b64decode(value, validate=True)),
}


def coerce_enum(value: Any, cls: type[Enum]) -> Enum:
    """The member with this value; flags take any combination, a ``_missing_`` of the class is asked too."""
    for member in cls:
        plain = to_plain(member._value_)
        if type(plain) is type(value) and plain == value:
            return member
    if type(value) is str or (type(value) is int and (issubclass(cls, Flag) or cls._missing_ is not Enum._missing_)):
        try:
            return cls(value)
        except ValueError:
            pass
    raise Misfit.expected(f"the value of a {cls.__name__}", value)


def coerce_ref(value: Any, model: Any) -> Ref[Any]:
    """A primary key of the annotated model, or an object ``{"model", "pk"}``."""
    known = model if isinstance(model, type) and issubclass(model, Model) else None
    if isinstance(value, dict) and value.keys() == {"model", "pk"}:
        label, value = value["model"], value["pk"]
        if not isinstance(label, str) or (known is not None and label != known._meta.label):
            raise Misfit(f"expected a reference to {known._meta.label if known else 'a model'}, got another one")
        if known is None:
            return Ref.to(label, tuple(value) if isinstance(value, list) else value)
    if known is None:
        raise Misfit.expected("a reference with model and pk", value)
    return Ref.to(known, coerce_key_of(known, value))


def coerce_key_of(model: type[Model], value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)  # a composite primary key
    if value is None or isinstance(value, bool | dict):
        raise Misfit.expected(f"a primary key of {model._meta.label}", value)
    try:
        return model._meta.pk.to_python(value)
    except Exception:
        raise Misfit(
            f"expected a primary key of {model._meta.label}, got {JSON_NAMES[type(value)]} that is none"
        ) from None


def is_foreign(cls: type) -> bool:
    """Whether the class was registered with functions of its own."""
    entry = entry_for(cls)
    return entry is not None and entry.fields is None


def coerce_registered(value: Any, cls: type) -> Any:
    """What a class registered by ``register_value`` decodes; of other classes only an instance, as it is."""
    entry = entry_for(cls)
    if entry is None:
        try:
            fits = isinstance(value, cls)
        except TypeError:  # a protocol that cannot be asked
            return value
        if fits:
            return value
        raise Misfit(f"a {qualified_name(cls)} cannot be given as JSON; register_value() can teach it")
    try:
        made = entry.read(value)
    except Exception as error:
        raise Misfit(
            f"expected a {cls.__name__}, but its registered decode() raised {type(error).__name__}"
        ) from error
    if type(made) is not cls:
        raise Misfit(f"expected a {cls.__name__}, but its registered decode() gave a {type(made).__name__}")
    return made
