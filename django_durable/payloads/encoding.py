"""Values to text. What is plain JSON goes through the C encoder as it is; only the rest is walked in Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.utils.functional import Promise

from django_durable.conf import config
from django_durable.errors import PayloadTooLarge, UnserializableValue, qualified_name
from django_durable.payloads import moments, scalars, tags
from django_durable.payloads.advice import advise
from django_durable.payloads.codecs import apply_codecs
from django_durable.payloads.refs import Ref
from django_durable.payloads.refusal import Refusal, subscript
from django_durable.payloads.registry import entry_for
from django_durable.payloads.value_types import ValueType

__all__ = ["encode"]

ATOMS: Final = frozenset({str, int, float, bool, type(None)})
PLAIN: Final = ATOMS | {list, dict}
STR_ONLY: Final = {str}
MEMBERS: Final[dict[type, str | None]] = {list: None, tuple: tags.TUPLE, set: tags.SET, frozenset: tags.FROZENSET}

dump_json: Final = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":")).encode
parse_json: Final = json.JSONDecoder().decode


class TooLarge(Exception):
    """The walk has seen more than the limit allows; what is still to come does not matter."""


def encode(value: Any, *, where: str, limit: int | None = None) -> str:
    """The value as ASCII text, from which ``decode`` makes an equal value of equal types.

    ``where`` names the value for the error ("result of step 'shop.charge'"). ``limit`` is in bytes of the text
    before any codec; ``MAX_PAYLOAD_BYTES`` by default. Dicts keep their order; equal sets give equal text.

    Raises ``UnserializableValue``, with the path inside the value, for anything that would not come back
    exactly, nested more than 200 levels, or containing itself; ``PayloadTooLarge``. Whatever a payload codec
    raises goes to the caller.
    """
    return apply_codecs(encode_plain(value, where=where, limit=limit))


def encode_plain(value: Any, *, where: str, limit: int | None = None) -> str:
    """What ``encode`` gives before any codec, and what it raises: for what is not stored, or not yet."""
    return encode_uncoded(value, where, config().max_payload_bytes if limit is None else limit)


def encode_uncoded(value: Any, where: str, limit: int) -> str:
    text = dump_plain(value, limit)
    if text is None:
        text = dump_tagged(value, where, limit)
    if len(text) > limit:
        raise too_large(where, f"{len(text):,}", limit)
    return text


def dump_plain(value: Any, limit: int) -> str | None:
    """The text of a value that JSON keeps exactly; ``None`` where only the walk can tell."""
    if type(value) not in ATOMS and not is_plain(value, limit):
        return None
    if not 0 < sys.get_int_max_str_digits() <= tags.DIGITS_LIMIT:
        return None  # digits that this process writes might be more than another one reads
    try:
        text = dump_json(value)
        if '{"$' in text:  # a dict that looks like a tag: inside strings the quote would have a backslash
            return None
        if "\\ud" in text and parse_json(text) != value:  # two surrogates that JSON joins
            return None
    except (ValueError, RecursionError):  # NaN, an infinity, an int of too many digits; a stack nearly full
        return None
    return text


def is_plain(value: Any, limit: int) -> bool:
    """Whether it consists of plain JSON types, within the limits of nesting and, roughly, of size.

    Level by level, so that one ``set(map(type, …))`` looks at many values at once and nothing recurses. The
    size keeps shared objects in check: a list of 50 levels that holds the next one twice has 2**50 leaves.
    """
    size = 0
    level = [value]
    for _ in range(tags.NESTING_LIMIT + 1):
        kinds = set(map(type, level))
        if not kinds <= PLAIN:
            return False
        if str in kinds:
            size += sum([len(item) for item in level if type(item) is str])
            if size > limit:
                return False
        if kinds <= ATOMS:
            return True
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is dict:
                if item and set(map(type, item)) != STR_ONLY:
                    return False
                below += item.values()
            elif kind is list:
                below += item
            if len(below) > limit:
                return False
        size += len(below)
        level = below
    return False


def dump_tagged(value: Any, where: str, limit: int) -> str:
    try:
        return dump_json(Walk(limit).write(value))
    except TooLarge:
        raise too_large(where, f"more than {limit:,}", limit) from None
    except Refusal as refusal:
        message = f"{where} cannot be stored: {refusal.path} {refusal.reason}"
        raise UnserializableValue(message, path=refusal.path) from refusal.__cause__
    except RecursionError:
        message = f"{where} cannot be stored: the call stack is nearly full here; call from further up"
        raise UnserializableValue(message, path="$") from None


def too_large(where: str, size: str, limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"{where} is {size} bytes encoded, and the limit is {limit:,}: keep the data in a table or file of your own "
        "and pass Ref(instance) or its name, or raise DURABLE['MAX_PAYLOAD_BYTES']"
    )


class Walk:
    """One pass over one value, which makes a JSON tree with tags of it; the value itself stays untouched."""

    __slots__ = ("depth", "room")

    def __init__(self, limit: int) -> None:
        self.depth = 0
        self.room = limit

    def write(self, value: Any) -> Any:
        """The JSON tree of any value; ``Refusal`` or ``TooLarge`` else."""
        form = FORMS.get(type(value))
        return form(self, value) if form is not None else self.write_other(value)

    def take(self, size: int) -> None:
        """Count what will need at least this many bytes."""
        self.room -= size
        if self.room < 0:
            raise TooLarge

    def enter(self, size: int) -> None:
        """One level down, into so many members."""
        self.take(size)
        self.depth += 1
        if self.depth > tags.NESTING_LIMIT:
            raise Refusal(f"is nested deeper than {tags.NESTING_LIMIT} levels, or contains itself")

    def write_str(self, value: str) -> Any:
        self.take(len(value))
        return scalars.write_str(value)

    def write_bytes(self, value: bytes) -> Any:
        self.take(len(value))
        return {tags.BYTES: scalars.write_bytes(value)}

    def write_members(self, value: Any) -> Any:
        """A list; a tuple; a set, sorted by its members' text."""
        self.enter(len(value))
        members: list[Any] = []
        try:
            for member in value:
                # One frame of the call stack a level, so that 200 levels fit wherever the call comes from.
                form = FORMS.get(type(member))
                members.append(form(self, member) if form is not None else self.write_other(member))
        except Refusal as refusal:
            refusal.at(f"[{len(members)}]")
            raise
        self.depth -= 1
        tag = MEMBERS[type(value)]
        if tag is None:
            return members
        return {tag: members if tag is tags.TUPLE else sorted(members, key=dump_json)}

    def write_dict(self, value: dict[Any, Any]) -> dict[str, Any]:
        self.enter(2 * len(value))
        pairs: list[Any] = []
        key: Any = None
        try:
            for key, member in value.items():
                form = FORMS.get(type(member))
                pairs += (
                    self.write(key),
                    form(self, member) if form is not None else self.write_other(member),
                )
        except Refusal as refusal:
            refusal.at(subscript(key))
            raise
        self.depth -= 1
        keys = pairs[::2]
        if set(map(type, keys)) <= STR_ONLY:
            node = dict(zip(keys, pairs[1::2], strict=True))
            if not tags.is_tag(node):
                return node
        return {tags.DICT: pairs}

    def write_ref(self, value: Ref[Any]) -> Any:
        self.enter(2)
        try:
            pk = self.write(value.pk)
        except Refusal as refusal:
            refusal.at(".pk")
            raise
        self.depth -= 1
        return {tags.REF: [value.label, pk]}

    def write_other(self, value: Any) -> Any:
        """A lazy string, a registered class, or nothing that can be stored."""
        if isinstance(value, Promise) and hasattr(type(value), "casefold"):
            return self.write(str.__str__(str(value)))
        entry = entry_for(type(value))
        if entry is None:
            raise Refusal(f"is a {qualified_name(type(value))}; {advise(value)}")
        if entry.fields is not None:
            return {tags.TYPE + entry.name: self.write_fields(entry.fields, value)}
        return self.write_foreign(entry, value)

    def write_fields(self, names: tuple[str, ...], value: Any) -> dict[str, Any]:
        self.enter(2 * len(names))
        record: dict[str, Any] = {}
        for name in names:
            try:
                record[name] = self.write(getattr(value, name))
            except Refusal as refusal:
                refusal.at(f".{name}")
                raise
            except AttributeError:
                raise Refusal(f"has no value in its field {name!r}") from None
        self.depth -= 1
        return record

    def write_foreign(self, entry: ValueType, value: Any) -> Any:
        self.enter(len(entry.name))
        try:
            stored = entry.write(value)
        except (Refusal, RecursionError):
            raise
        except Exception as error:
            raise Refusal(
                f"is a {entry.name} whose registered encode() raised {qualified_name(type(error))}"
            ) from error
        tree = self.write(stored)
        self.depth -= 1
        return {tags.TYPE + entry.name: tree}


def as_is(walk: Walk, value: Any) -> Any:
    return value


def tagged(tag: str, write: Callable[[Any], Any]) -> Callable[[Walk, Any], Any]:
    return lambda walk, value: {tag: write(value)}


FORMS: Final[dict[type, Callable[[Walk, Any], Any]]] = {
    type(None): as_is,
    bool: as_is,
    str: Walk.write_str,
    int: lambda walk, value: scalars.write_int(value),
    float: lambda walk, value: scalars.write_float(value),
    list: Walk.write_members,
    tuple: Walk.write_members,
    set: Walk.write_members,
    frozenset: Walk.write_members,
    dict: Walk.write_dict,
    bytes: Walk.write_bytes,
    Decimal: tagged(tags.DECIMAL, str),
    UUID: tagged(tags.UUID, str),
    datetime: tagged(tags.DATETIME, moments.write_moment),
    date: tagged(tags.DATE, date.isoformat),
    time: tagged(tags.TIME, moments.write_moment),
    timedelta: tagged(tags.TIMEDELTA, moments.write_timedelta),
    Ref: Walk.write_ref,
}
