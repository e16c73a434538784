"""Text to values. Text without tags goes through the C parser alone; the others call back for each object."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NoReturn

from django_durable.errors import UndecodableValue, qualified_name
from django_durable.payloads import moments, scalars, tags
from django_durable.payloads.codecs import MARK, undo_codecs
from django_durable.payloads.refs import Ref
from django_durable.payloads.registry import entry_named

__all__ = ["decode", "parse_stored"]

NO_BRACKETS: Final = bytes(set(range(256)) - set(b'[]{}"'))
AS_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")


def decode(text: str) -> Any:
    """The value of a stored text: fresh objects on every call, equal to what was encoded, of the same types.

    ``UndecodableValue`` for anything else than ``encode`` writes, and for a class or codec that this process
    does not know; the message tells what, but shows nothing of the value. ``OSError`` where a payload codec
    cannot reach what it needs: the text may be fine.
    """
    return parse_stored(text, revive)


def parse_stored(text: str, hook: Callable[[dict[str, Any]], Any], *, always: bool = False) -> Any:
    """Parse a stored text, with ``hook`` called for each JSON object, innermost first.

    Not called in a text that has no tags, unless ``always``.
    """
    if not isinstance(text, str):
        raise UndecodableValue(f"a stored value is text, not {type(text).__name__}")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise UndecodableValue("the stored value holds bytes that are no text")
    if text.startswith(MARK):
        text = undo_codecs(text)
    tagged = '"$' in text
    check_nesting(text, tags.JSON_NESTING_LIMIT if tagged else tags.NESTING_LIMIT)
    try:
        return parse(text, hook if tagged or always else None)
    except RecursionError:
        raise UndecodableValue("the call stack is nearly full here; read the stored value further up") from None


def parse(text: str, hook: Callable[[dict[str, Any]], Any] | None) -> Any:
    decoder = PLAIN_DECODER if hook is None else TAGGED_DECODERS.get(hook) or make_decoder(object_hook=hook)
    try:
        return decoder.decode(text)
    except UndecodableValue:
        raise
    except json.JSONDecodeError as error:
        raise UndecodableValue(f"the stored value is no JSON: {error.msg} at character {error.pos}") from None
    except ValueError:  # digits beyond the limit of this interpreter, which is lower than the writer's
        return parse_long(text, hook)


def parse_long(text: str, hook: Callable[[dict[str, Any]], Any] | None) -> Any:
    try:
        return make_decoder(object_hook=hook, parse_int=scalars.read_long_digits).decode(text)
    except UndecodableValue:
        raise
    except ValueError:
        raise UndecodableValue(f"the stored value has a number of more than {tags.DIGITS_LIMIT} digits") from None


def check_nesting(text: str, limit: int) -> None:
    """Refuse brackets nested deeper than the limit, before a parser that recurses sees them.

    An interpreter whose recursion limit was raised would crash there instead of raising.
    """
    if text.count("[") + text.count("{") <= limit:
        return
    if "\\" in text:
        text = text.replace("\\\\", "").replace('\\"', "")
    outside = text.encode("utf-8", "replace").translate(AS_ONE_KIND, NO_BRACKETS).replace(b'""', b"")
    if b'"' in outside:  # brackets inside strings: every other part is one
        outside = b"".join(outside.split(b'"')[::2])
    for _ in range(limit):
        inner = outside.replace(b"[]", b"")  # takes away the innermost level, everywhere
        if len(inner) == len(outside):
            break
        outside = inner
    if outside:
        raise UndecodableValue(f"the stored value is nested deeper than {limit} levels, or its brackets do not match")


def revive(node: dict[str, Any]) -> Any:
    """The value that a JSON object stands for; its members are values already."""
    if len(node) != 1:
        return node
    (tag,) = node
    if not tag.startswith("$"):
        return node
    payload = node[tag]
    try:
        read = READERS.get(tag)
        if read is not None:
            return read(payload)
        return read_registered(tag, payload)
    except (UndecodableValue, RecursionError):
        raise
    except Exception as error:
        message = f"a stored {tag[:200]!r} is malformed: {qualified_name(type(error))}"
        raise UndecodableValue(message) from None


def read_registered(tag: str, payload: Any) -> Any:
    if not tag.startswith(tags.TYPE):
        raise UndecodableValue(f"{tag[:200]!r} is no kind of value that this version of django-durable knows")
    name = tag.removeprefix(tags.TYPE)
    entry = entry_named(name)
    if entry is None:
        raise UndecodableValue(
            f"no value type {name[:200]!r} is registered in this process: mark the class with @value_type or call "
            "register_value(), in a module that is imported at start-up"
        )
    return entry.read(payload)


def members_of(payload: Any) -> list[Any]:
    if type(payload) is not list:
        raise TypeError("not a list")
    return payload


def distinct(read: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    def read_distinct(payload: Any) -> Any:
        members = read(members_of(payload))
        if len(members) != len(payload):
            raise ValueError("members repeat")
        return members

    return read_distinct


def read_dict(payload: Any) -> dict[Any, Any]:
    pairs = members_of(payload)
    value = dict(zip(pairs[::2], pairs[1::2], strict=True))
    if 2 * len(value) != len(pairs):
        raise ValueError("keys repeat")
    return value


def read_ref(payload: Any) -> Ref[Any]:
    label, pk = payload
    return Ref.to(scalars.text_of(label), pk)


READERS: Final[dict[str, Callable[[Any], Any]]] = {
    tags.INT: scalars.read_int,
    tags.FLOAT: scalars.read_float,
    tags.STR: scalars.read_str,
    tags.BYTES: scalars.read_bytes,
    tags.DECIMAL: scalars.read_decimal,
    tags.UUID: scalars.read_uuid,
    tags.DATETIME: moments.read_datetime,
    tags.DATE: moments.read_date,
    tags.TIME: moments.read_time,
    tags.TIMEDELTA: moments.read_timedelta,
    tags.TUPLE: lambda payload: tuple(members_of(payload)),
    tags.SET: distinct(set),
    tags.FROZENSET: distinct(frozenset),
    tags.DICT: read_dict,
    tags.REF: read_ref,
}


def refuse_constant(name: str) -> NoReturn:
    raise UndecodableValue(f"the stored value is no JSON: {name} is not allowed")


def make_decoder(
    object_hook: Callable[[dict[str, Any]], Any] | None = None, parse_int: Callable[[str], int] | None = None
) -> json.JSONDecoder:
    return json.JSONDecoder(object_hook=object_hook, parse_int=parse_int, parse_constant=refuse_constant)


PLAIN_DECODER: Final = make_decoder()
TAGGED_DECODERS: Final[dict[Callable[[dict[str, Any]], Any], json.JSONDecoder]] = {
    revive: make_decoder(object_hook=revive)
}
