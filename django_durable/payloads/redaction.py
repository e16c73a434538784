"""Masking of secrets by the name of their key: what ``DURABLE["REDACT"]`` keeps from every page and log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache
from typing import Any, Final

from django_durable.payloads import tags
from django_durable.payloads.decoding import parse_stored
from django_durable.payloads.plain import MASKED, Mask, make_plain, plain_str, to_plain

__all__ = ["redact", "redact_text", "secrets_in", "to_tagged"]

SHORTEST_SECRET: Final = 4  # shorter ones are parts of ordinary words
QUOTED_OR_BARE: Final = r"""(?:[bu]?"(?:[^"\\\n]|\\.)*"|[bu]?'(?:[^'\\\n]|\\.)*'|[^\s,;)}\]]+)"""


def redact(value: Any, globs: Iterable[str]) -> Any:
    """The plain form of the value (``to_plain``) with every member masked whose key matches one of the globs.

    Shell globs, case does not matter: ``password``, ``*token*``. Keys are parameter names, dict keys and
    dataclass fields, at any depth. With no globs this is ``to_plain``.
    """
    return make_plain(value, mask_for(tuple(globs)), 0)


def to_tagged(text: str, *, globs: Iterable[str] = ()) -> Any:
    """The JSON tree of a stored text with its type tags, masked like ``redact``; needs no registered class.

    ``UndecodableValue`` for a text that cannot be parsed.
    """
    mask = mask_for(tuple(globs))
    if mask is None:
        return parse_stored(text, lambda node: node)
    return parse_stored(text, lambda node: mask_node(node, mask), always=True)


def secrets_in(value: Any, globs: Iterable[str]) -> frozenset[str]:
    """The texts under keys that match: what ``redact_text`` should remove from messages about this value."""
    mask = mask_for(tuple(globs))
    found: set[str] = set()
    if mask is not None:
        collect(to_plain(value), mask, False, found)
    return frozenset(found)


def redact_text(text: str, globs: Iterable[str], secrets: Iterable[str] = ()) -> str:
    """Free text, such as an error message, without these secrets and without ``key: value`` of matching keys."""
    for secret in sorted(secrets, key=len, reverse=True):
        for spelling in {secret, repr(secret)[1:-1]}:
            text = text.replace(spelling, MASKED)
    pattern = assignment_pattern(tuple(globs))
    return text if pattern is None else pattern.sub(lambda found: found["key"] + MASKED, text)


@lru_cache(maxsize=16)
def mask_for(globs: tuple[str, ...]) -> Mask | None:
    if not globs:
        return None
    matches = re.compile("|".join(translate(glob.lower()) for glob in globs)).match
    return lambda name: matches(name.lower()) is not None


@lru_cache(maxsize=16)
def assignment_pattern(globs: tuple[str, ...]) -> re.Pattern[str] | None:
    """``password=…``, ``'password': …`` and the like, in any text."""
    if not globs:
        return None
    names = "|".join(word_pattern(glob) for glob in globs)
    return re.compile(rf"(?P<key>(?<!\w)(?:{names})[\"']?\s*[:=]\s*){QUOTED_OR_BARE}", re.IGNORECASE)


def word_pattern(glob: str) -> str:
    """The glob as a pattern that stays within one word; bounded, since several stars would try every split."""
    return re.escape(glob).replace(r"\*", r"\w{0,64}").replace(r"\?", r"\w")


def mask_node(node: dict[str, Any], mask: Mask) -> dict[str, Any]:
    if not tags.is_tag(node):
        return {key: MASKED if mask(key) else member for key, member in node.items()}
    pairs = node.get(tags.DICT)
    if not isinstance(pairs, list):
        return node
    masked = list(pairs)
    for index in range(1, len(pairs), 2):
        if any(mask(text) for text in texts_in(pairs[index - 1])):
            masked[index] = MASKED
    return {tags.DICT: masked}


def texts_in(key: Any) -> list[str]:
    """Every text in the tree of a dict key: ``"x"``, ``{"$type:…": "X"}``."""
    found, waiting = [], [key]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict | list):
            waiting += item.values() if isinstance(item, dict) else item
    return found


def collect(plain: Any, mask: Mask, inside: bool, found: set[str]) -> None:
    if isinstance(plain, dict):
        for key, member in plain.items():
            collect(member, mask, inside or mask(key), found)
    elif isinstance(plain, list):
        for member in plain:
            collect(member, mask, inside, found)
    elif inside and isinstance(plain, str | int | float) and len(text := plain_str(str(plain))) >= SHORTEST_SECRET:
        found.add(text)
