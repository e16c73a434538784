"""How a stored value is spelled: JSON, in which an object of one key that begins with ``$`` is a typed value.

| Python | stored |
|---|---|
| None, bool, finite float, str, int, list, dict with str keys | JSON |
| NaN and the infinities | ``{"$float": "nan"}``, ``"inf"``, ``"-inf"``; a NaN with other bits ``"nan:<hex>"`` |
| int of more digits than this interpreter converts | ``{"$int": "-1f…"}``, hexadecimal |
| str with a high surrogate before a low one (JSON would join them) | ``{"$str": base64 of its UTF-8}`` |
| dict with other keys, or whose only key begins with ``$`` | ``{"$dict": [key, value, key, value, …]}`` |
| tuple, set, frozenset | ``{"$tuple": […]}``, ``{"$set": […]}`` sorted by the members' text |
| Decimal, UUID, bytes | ``{"$decimal": "12.50"}``, ``{"$uuid": "…"}``, ``{"$bytes": base64}`` |
| datetime, date, time, timedelta | see ``moments`` |
| Ref | ``{"$ref": ["shop.Order", pk]}`` |
| registered Enum, dataclass, foreign class | ``{"$type:<registered name>": …}`` |

Text is ASCII: NUL and surrogates are escaped, so it fits a text column of any database and any collation.
"""

from __future__ import annotations

from typing import Final

NESTING_LIMIT: Final = 200
"""How deep containers may be nested in a value."""

JSON_NESTING_LIMIT: Final = 2 * NESTING_LIMIT + 4
"""How deep brackets may be nested in a stored text: every tag adds one level, a leaf like a date up to two."""

DIGITS_LIMIT: Final = 4300
"""The interpreter's default limit for int from and to str: no longer number is ever written in digits."""

INT: Final = "$int"
FLOAT: Final = "$float"
STR: Final = "$str"
BYTES: Final = "$bytes"
DECIMAL: Final = "$decimal"
UUID: Final = "$uuid"
DATETIME: Final = "$datetime"
DATE: Final = "$date"
TIME: Final = "$time"
TIMEDELTA: Final = "$timedelta"
TUPLE: Final = "$tuple"
SET: Final = "$set"
FROZENSET: Final = "$frozenset"
DICT: Final = "$dict"
REF: Final = "$ref"
TYPE: Final = "$type:"
"""Before a registered name."""


def is_tag(node: dict[str, object]) -> bool:
    """Whether this JSON object is a typed value; an ordinary dict of that look is stored as ``$dict``."""
    return len(node) == 1 and next(iter(node)).startswith("$")
