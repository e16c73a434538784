"""Errors as they are stored. Writing one always succeeds, whatever the exception is and whatever is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from django_durable.conf import config
from django_durable.errors import CodecUnavailable, UndecodableValue, qualified_name
from django_durable.payloads.codecs import apply_codecs
from django_durable.payloads.decoding import decode
from django_durable.payloads.encoding import dump_json, encode_uncoded
from django_durable.payloads.plain import plain_str
from django_durable.payloads.redaction import redact_text
from django_durable.payloads.traceback_text import format_traceback, message_of

__all__ = ["FAILURE_BYTES", "decode_failure", "describe_failure", "encode_failure", "store_failure"]

FAILURE_BYTES: Final = 8_000
"""Bytes of one stored error. Rows that change often carry one, so it must stay small."""

NAME_LIMIT: Final = 255
LONGEST: Final = 20  # times the limit: more text than this is shortened before it is searched for secrets
CUT: Final = "\n[… {count} characters …]\n"


class StoredFailure(NamedTuple):
    """The text to store, and what ``decode_failure`` would read in it."""

    text: str
    told: dict[str, Any]


def encode_failure(
    exc: BaseException,
    *,
    limit: int = FAILURE_BYTES,
    secrets: Iterable[str] = (),
    whole: bool = False,
    **extra: Any,
) -> str:
    """The text of ``store_failure``."""
    return store_failure(exc, limit=limit, secrets=secrets, whole=whole, **extra).text


def store_failure(
    exc: BaseException,
    *,
    limit: int = FAILURE_BYTES,
    secrets: Iterable[str] = (),
    whole: bool = False,
    **extra: Any,
) -> StoredFailure:
    """The exception as it is stored: type, message, traceback without local variables, lineage, and ``extra``.

    Succeeds whatever the exception is. ``type`` is the qualified class name, ``lineage`` those of all its classes.
    Message and traceback lose their middle so that the text, before any codec, has at most ``limit`` bytes
    (1,000 or more); what UTF-8 cannot hold is escaped. ``secrets``, and what ``DURABLE["REDACT"]`` names, are
    masked in both. ``extra`` is for names and numbers and wins over the four; a member that cannot be stored
    is replaced by its class. Where a codec fails, message and traceback are left out, not stored in clear; but
    ``whole``, for what can wait, lets ``CodecUnavailable`` out.
    """
    record: dict[str, Any] = {
        "type": fitting(name_of(type(exc)), limit // 4),
        "message": attempt(lambda: message_of(exc)),
        "traceback": attempt(lambda: format_traceback(exc)),
        "lineage": lineage_of(exc, limit // 4),
    }
    known = frozenset(secrets)
    texts = {name: extra.pop(name, record[name]) for name in ("message", "traceback")}
    record |= storable(extra, limit // 4)
    record |= {name: masked(text, known, LONGEST * limit) for name, text in texts.items()}
    fit(record, limit)
    try:
        return StoredFailure(apply_codecs(json_of(record)), record)
    except Exception as error:
        if whole and isinstance(error, CodecUnavailable):
            raise
        message = f"<not stored: a payload codec failed with {name_of(type(error))}>"
        record |= {"message": message, "traceback": ""}
        return StoredFailure(json_of(record), record)


def decode_failure(text: str) -> dict[str, Any]:
    """What ``encode_failure`` stored, a dict with at least its four keys; ``UndecodableValue``."""
    record = decode(text)
    if not isinstance(record, dict):
        raise UndecodableValue(f"a stored error is an object, not {type(record).__name__}")
    return {"type": "", "message": "", "traceback": "", "lineage": [], **record}


def describe_failure(text: str) -> dict[str, Any]:
    """``decode_failure`` for pages and lists: never raises, and says so where the stored error cannot be read."""
    try:
        return decode_failure(text)
    except Exception as error:
        return describe(error)


def describe(error: Exception) -> dict[str, Any]:
    name = name_of(type(error))
    message = attempt(lambda: message_of(error))
    return {"type": name, "message": message, "traceback": "", "lineage": [name]}


def attempt(make: Callable[[], object]) -> str:
    try:
        return plain_str(str(make()))
    except Exception as error:  # code of the exception, or what it has put in the place of its attributes
        return f"<unreadable: {type(error).__name__}>"


def name_of(cls: type) -> str:
    return attempt(lambda: qualified_name(cls))[:NAME_LIMIT]


def fitting(name: str, room: int) -> str:
    while size_of(name) > room:
        name = name[: len(name) // 2]
    return name


def lineage_of(exc: BaseException, room: int) -> list[str]:
    """The names of its exception classes, its own first; as many as fit."""
    names: list[str] = []
    for cls in type(exc).__mro__:
        if issubclass(cls, BaseException):
            name = name_of(cls)
            room -= len(dump_json(name)) + 1
            if room < 0:
                break
            names.append(name)
    return names


def storable(extra: dict[str, Any], room: int) -> dict[str, Any]:
    """The members that can be stored and fit; in the place of the others, their class."""
    kept: dict[str, Any] = {}
    for name, member in extra.items():
        try:
            room -= len(encode_uncoded(member, "a failure", max(room, 0)))
            kept[name] = member
        except Exception:
            kept[name] = f"<{type(member).__name__}>"
    return kept


def masked(text: object, secrets: frozenset[str], longest: int) -> str:
    exact = attempt(lambda: text)
    try:
        return redact_text(shorten(exact, longest), config().redact, secrets)
    except Exception as error:
        return f"<not stored: masking failed with {type(error).__name__}>"


def fit(record: dict[str, Any], limit: int) -> None:
    """Cut message and traceback: a third of the room is the message's, and what one does not need the other gets."""
    traceback = record["traceback"]
    room = limit - len(json_of({**record, "message": "", "traceback": ""}))
    record["message"] = cut(record["message"], room - min(size_of(traceback), room * 2 // 3))
    record["traceback"] = cut(traceback, room - size_of(record["message"]))


def cut(text: str, room: int) -> str:
    """The text without so much of its middle that its JSON form has at most ``room`` bytes; nothing, if need be."""
    shorter, keep = text, len(text)
    while (size := size_of(shorter)) > room:
        keep = min(keep - 1, keep * max(room, 0) // size)
        if keep <= 0:
            return ""
        shorter = shorten(text, keep)
    return shorter


def shorten(text: str, keep: int) -> str:
    """So many characters of the text: a third from the beginning, the others, with the error, from the end."""
    if len(text) <= keep:
        return text
    head = keep // 3
    return text[:head] + CUT.format(count=len(text) - keep) + text[len(text) - keep + head :]


def size_of(text: str) -> int:
    return len(dump_json(text)) - 2


def json_of(record: dict[str, Any]) -> str:
    return encode_uncoded(record, "a failure", sys.maxsize)
