"""Whether two stored texts stand for the same value, asked without making the values."""

from __future__ import annotations

import json
from typing import Any, Final

from django_durable.payloads import tags
from django_durable.payloads.decoding import parse_stored

__all__ = ["same_value"]

dump_sorted: Final = json.JSONEncoder(check_circular=False, separators=(",", ":"), sort_keys=True).encode


def same_value(a: str, b: str) -> bool:
    """Equality of two stored texts in canonical form.

    The order of dict keys does not matter, type and exact form do: ``1``, ``1.0`` and ``True`` differ, and so do
    ``Decimal("1.0")`` and ``Decimal("1.00")``. Codecs are undone; registered classes need not be known here.
    ``UndecodableValue`` for a text that cannot be parsed, unless the two are the same.
    """
    return a == b or canonical(a) == canonical(b)


def canonical(text: str) -> str:
    return dump_sorted(parse_stored(text, sort_node))


def sort_node(node: dict[str, Any]) -> dict[str, Any]:
    """Give the members of a set, and the pairs of a dict that is stored as such, one order."""
    if not tags.is_tag(node):
        return node
    ((tag, payload),) = node.items()
    if not isinstance(payload, list):
        return node
    if tag in (tags.SET, tags.FROZENSET):
        return {tag: sorted(payload, key=dump_sorted)}
    if tag == tags.DICT:
        pairs = zip(payload[::2], payload[1::2], strict=False)
        return {tag: sorted(pairs, key=lambda pair: dump_sorted(pair[0]))}
    return node
