"""Plain JSON to what a function's annotations ask for: the way in from REST and the command line."""

from __future__ import annotations

import collections.abc as abc
import inspect
import json
import types
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import is_dataclass
from enum import Enum
from typing import (
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)

from django_durable.payloads.coercion_leaves import (
    LEAVES,
    Misfit,
    coerce_enum,
    coerce_ref,
    coerce_registered,
    is_foreign,
)
from django_durable.payloads.hints import bare, resolve_hints, substitute
from django_durable.payloads.refs import Ref
from django_durable.payloads.refusal import subscript

__all__ = ["UnfitArgument", "coerce_arguments"]

LISTS: Final = (list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable)
SETS: Final = {set: set, frozenset: frozenset, abc.Set: set, abc.MutableSet: set}
DICTS: Final = (dict, abc.Mapping, abc.MutableMapping)


ATTEMPTS_LIMIT: Final = 1_000_000
"""How many members of Unions one argument may try: recursive ones can have twice as many at every level."""

attempts: ContextVar[int] = ContextVar("attempts", default=0)


class TooManyAttempts(Exception):
    """No ``Misfit``, since the next member of the Union would catch it."""


class UnfitArgument(ValueError):
    """A JSON value does not fit its parameter; ``parameter``, ``path`` inside it and ``reason`` tell."""

    def __init__(self, parameter: str, path: str, reason: str) -> None:
        self.parameter = parameter
        self.path = path
        self.reason = reason
        super().__init__(f"parameter {parameter!r}{f' at {path}' if path != '$' else ''}: {reason}")


def coerce_arguments(func: Callable[..., Any], plain: dict[str, Any]) -> dict[str, Any]:
    """The JSON arguments, by parameter name, as the types that the function's annotations name.

    Decimal from a string or a number (a float by its shortest decimal form), UUID, dates and times from
    ISO 8601, durations from seconds or ISO 8601, bytes from base64, Enums from their value, ``Ref[Model]`` from
    a primary key, dataclasses from an object through their constructor, registered classes through their
    decode function; inside lists, tuples, sets, dicts (keys from their text), TypedDicts, Optional and Union.
    Of a Union the member that takes the value as it is goes first, then their order. What has no annotation,
    or one that says nothing at run time, stays as it is; so do names that are no parameters.

    ``UnfitArgument``, a ``ValueError``, for the first value that does not fit; it shows no values.
    """
    hints = parameter_hints(func)
    return {
        name: coerce_argument(name, value, hints[name]) if name in hints else value for name, value in plain.items()
    }


def parameter_hints(func: Callable[..., Any]) -> dict[str, Any]:
    hints = dict(resolve_hints(func))
    hints.pop("return", None)
    for name, parameter in inspect.signature(func).parameters.items():
        if name in hints and parameter.kind is parameter.VAR_POSITIONAL:
            hints[name] = types.GenericAlias(tuple, (hints[name], ...))
        elif name in hints and parameter.kind is parameter.VAR_KEYWORD:
            hints[name] = types.GenericAlias(dict, (str, hints[name]))
    return hints


def coerce_argument(name: str, value: Any, hint: Any) -> Any:
    attempts.set(0)
    try:
        return coerce(value, hint)
    except Misfit as misfit:
        raise UnfitArgument(name, misfit.path, misfit.reason) from misfit.__cause__
    except TooManyAttempts:
        raise UnfitArgument(name, "$", "too many members of its Unions could be meant") from None
    except RecursionError:
        raise UnfitArgument(name, "$", "the value is nested too deeply") from None


def coerce(value: Any, hint: Any) -> Any:
    """The value as the annotation wants it; ``Misfit``."""
    hint = bare(hint)
    origin = get_origin(hint) or hint
    if origin is Union or origin is types.UnionType:
        return coerce_union(value, get_args(hint))
    if origin is Literal:
        return coerce_literal(value, get_args(hint))
    if origin is Any or origin is object or not isinstance(origin, type):
        return value
    if origin in LEAVES:
        return LEAVES[origin](value)
    return coerce_class(value, origin, get_args(hint))


def coerce_class(value: Any, cls: type, parts: tuple[Any, ...]) -> Any:
    if cls in LISTS:
        return coerce_list(value, parts[0] if parts else Any)
    if cls in SETS:
        return coerce_set(value, SETS[cls], parts[0] if parts else Any)
    if cls is tuple:
        return coerce_tuple(value, parts)
    if cls in DICTS:
        return coerce_dict(value, *(parts or (Any, Any)))
    if cls is Ref:
        return coerce_ref(value, parts[0] if parts else None)
    if is_typeddict(cls):
        return coerce_typed_dict(value, cls)
    if issubclass(cls, Enum):
        return coerce_enum(value, cls)
    if is_dataclass(cls) and not is_foreign(cls):
        return coerce_dataclass(value, cls, parts)
    return coerce_registered(value, cls)


def coerce_union(value: Any, parts: tuple[Any, ...]) -> Any:
    fits, misfits = [], []
    attempts.set(attempts.get() + len(parts))
    if attempts.get() > ATTEMPTS_LIMIT:
        raise TooManyAttempts
    for part in parts:
        try:
            made = coerce(value, part)
        except Misfit as misfit:
            if part is not type(None):
                misfits.append(misfit)
            continue
        if unchanged(made, value):
            return made
        fits.append(made)
    if fits:
        return fits[0]
    if len(misfits) == 1:  # an Optional: its one member tells more
        raise misfits[0]
    raise Misfit.expected("one of " + ", ".join(getattr(part, "__name__", str(part)) for part in parts), value)


def unchanged(made: Any, value: Any) -> bool:
    if made is value:
        return True
    if type(made) is not type(value):
        return False
    if isinstance(value, list):
        return len(made) == len(value) and all(map(unchanged, made, value))
    if isinstance(value, dict):
        return made.keys() == value.keys() and all(unchanged(made[key], value[key]) for key in value)
    return bool(made == value)


def coerce_literal(value: Any, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if isinstance(choice, Enum) and type(choice._value_) is type(value) and choice._value_ == value:
            return choice
        if type(choice) is type(value) and choice == value:
            return choice
    raise Misfit.expected("one of the literals " + ", ".join(map(repr, choices)), value)


def coerce_list(value: Any, part: Any) -> list[Any]:
    return coerce_items(value, [part] * len(value) if isinstance(value, list) else [])


def coerce_items(value: Any, parts: list[Any]) -> list[Any]:
    if not isinstance(value, list):
        raise Misfit.expected("an array", value)
    made: list[Any] = []
    try:
        for item, part in zip(value, parts, strict=True):
            made.append(coerce(item, part))
    except Misfit as misfit:
        misfit.at(f"[{len(made)}]")
        raise
    return made


def coerce_tuple(value: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    if not parts or (len(parts) == 2 and parts[1] is Ellipsis):
        return tuple(coerce_list(value, parts[0] if parts else Any))
    if isinstance(value, list) and len(value) != len(parts):
        raise Misfit(f"expected an array of {len(parts)} items, got {len(value)}")
    return tuple(coerce_items(value, list(parts)))


def coerce_set(value: Any, cls: type, part: Any) -> Any:
    members = coerce_list(value, part)
    try:
        made = cls(members)
    except TypeError:
        raise Misfit("expected an array of values that can be members of a set") from None
    if len(made) != len(members):
        raise Misfit("expected an array without repetitions")
    return made


def coerce_dict(value: Any, key_part: Any, part: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise Misfit.expected("an object", value)
    made: dict[Any, Any] = {}
    for name, member in value.items():
        try:
            key = coerce_key(name, key_part)
            if key in made:
                raise Misfit("this key means the same as an earlier one")
            made[key] = coerce(member, part)
        except Misfit as misfit:
            misfit.at(subscript(name))
            raise
    return made


def coerce_key(name: str, part: Any) -> Any:
    """A dict key, which JSON has as text only: the text itself where that fits, or else what it spells."""
    try:
        key = coerce(name, part)
    except Misfit as misfit:
        try:
            key = coerce(json.loads(name), part)
        except (Misfit, ValueError, RecursionError):
            raise misfit from None
    try:
        hash(key)
    except TypeError:
        raise Misfit("this key would not be hashable") from None
    return key


def coerce_typed_dict(value: Any, cls: Any) -> dict[str, Any]:
    hints = resolve_hints(cls)
    named = coerce_names(value, hints, cls.__name__)
    # The class itself overlooks NotRequired where annotations are strings.
    optional = {name for name, hint in hints.items() if get_origin(hint) is NotRequired}
    required = {name for name, hint in hints.items() if get_origin(hint) is Required}
    if missing := (cls.__required_keys__ - optional | required) - named.keys():
        raise Misfit(f"the object lacks {', '.join(map(repr, sorted(missing)))}")
    return named


def coerce_dataclass(value: Any, cls: Any, parts: tuple[Any, ...]) -> Any:
    chosen = dict(zip(getattr(cls, "__parameters__", ()), parts, strict=False))
    hints = resolve_hints(cls)
    wanted = {name: substitute(hints.get(name, Any), chosen) for name in inspect.signature(cls).parameters}
    named = coerce_names(value, wanted, cls.__name__)
    try:
        inspect.signature(cls).bind(**named)
    except TypeError as error:
        raise Misfit(f"the object is no {cls.__name__}: {error}") from None
    try:
        return cls(**named)
    except Exception as error:
        raise Misfit(f"{cls.__name__} refuses the object: {type(error).__name__}") from error


def coerce_names(value: Any, hints: dict[str, Any], of: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misfit.expected("an object", value)
    for name in value:
        if name not in hints:
            misfit = Misfit(f"{of} has no field of this name")
            misfit.at(subscript(name))
            raise misfit
    made: dict[str, Any] = {}
    for name, member in value.items():
        try:
            made[name] = coerce(member, hints[name])
        except Misfit as misfit:
            misfit.at(subscript(name))
            raise
    return made
