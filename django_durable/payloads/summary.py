"""Stored values as type and size, for whoever may not see them or need not."""

from __future__ import annotations

from typing import Any, Final

from django_durable.payloads import tags
from django_durable.payloads.decoding import parse_stored

__all__ = ["summarize"]

COUNTED: Final = {
    tags.TUPLE: ("tuple", "item", "items", 1),
    tags.SET: ("set", "item", "items", 1),
    tags.FROZENSET: ("frozenset", "item", "items", 1),
    tags.DICT: ("dict", "key", "keys", 2),
}
NAMED: Final = {tags.UUID: "UUID", tags.DECIMAL: "Decimal", tags.REF: "Ref"}


def summarize(text: str | None) -> str:
    """Like ``dict, 3 keys, 120 bytes``: the type, how many members, the size of the stored text; never a value.

    ``nothing`` where nothing is stored, ``unreadable, 120 bytes`` for what ``decode`` would refuse to parse.
    Never raises, and needs no registered class. A list of rows may call it for each of them.
    """
    if text is None:
        return "nothing"
    try:
        kind = describe(parse_stored(text, lambda node: node))
    except Exception:  # whatever is in the column, or in the way of a codec, the page must come
        kind = "unreadable"
    if kind in ("None", "bool"):
        return kind  # the size would tell which of the two it is
    return f"{kind}, {counted(len(text), 'byte', 'bytes')}"


def describe(tree: Any) -> str:
    if isinstance(tree, dict):
        return describe_tagged(tree) if tags.is_tag(tree) else f"dict, {counted(len(tree), 'key', 'keys')}"
    if isinstance(tree, list):
        return f"list, {counted(len(tree), 'item', 'items')}"
    return "None" if tree is None else type(tree).__name__


def describe_tagged(tree: dict[str, Any]) -> str:
    ((tag, payload),) = tree.items()
    if tag in COUNTED and isinstance(payload, list):
        name, one, many, step = COUNTED[tag]
        return f"{name}, {counted(len(payload) // step, one, many)}"
    if tag.startswith(tags.TYPE):
        return tag.removeprefix(tags.TYPE)[:255]
    return NAMED.get(tag) or tag[1:80]


def counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
