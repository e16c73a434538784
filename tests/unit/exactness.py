"""Equality as strict as the codec promises: same type, same form, also inside."""

from __future__ import annotations

import struct
from dataclasses import fields, is_dataclass
from datetime import datetime, time
from decimal import Decimal
from typing import Any

from django_durable.payloads import Ref


def identical(a: Any, b: Any) -> bool:
    """Whether nothing that a program can see tells the two apart, but for their identity."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    if isinstance(a, Decimal):
        return a.as_tuple() == b.as_tuple()
    if isinstance(a, datetime | time):
        return (
            a.replace(tzinfo=None) == b.replace(tzinfo=None)
            and a.fold == b.fold
            and type(a.tzinfo) is type(b.tzinfo)
            and repr(a.tzinfo) == repr(b.tzinfo)
        )
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(map(identical, a.items(), b.items()))
    if isinstance(a, set | frozenset):
        return len(a) == len(b) and all(any(identical(x, y) for y in b) for x in a)
    if isinstance(a, Ref):
        return a.label == b.label and identical(a.pk, b.pk)
    if is_dataclass(a):
        return all(identical(getattr(a, field.name), getattr(b, field.name)) for field in fields(a))
    return bool(a == b)
