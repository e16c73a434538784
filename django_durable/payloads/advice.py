"""What to do with a value that cannot be stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from django.utils.functional import Promise

EXACT = (
    dict,
    list,
    tuple,
    set,
    frozenset,
    str,
    bytes,
    bool,
    int,
    float,
    datetime,
    date,
    time,
    timedelta,
    Decimal,
    UUID,
)


def advise(value: Any) -> str:
    """The end of the sentence "it is a …; …". Asks the class only: the instance may run code when looked at."""
    cls = type(value)
    if issubclass(cls, Model):
        return "pass Ref(instance), or the fields that are needed"
    if issubclass(cls, QuerySet):
        return "pass list(queryset.values(…)), or a list of Ref(instance)"
    if issubclass(cls, Awaitable | AsyncIterator):
        return "await it first"
    if issubclass(cls, Promise):
        return "evaluate it first: only lazy strings are evaluated here"
    if issubclass(cls, Enum) or is_dataclass(cls):
        return "mark the class with @value_type, or name it in an annotation of a registered step or workflow"
    for base in EXACT:
        if issubclass(cls, base):
            return f"only {base.__name__} itself comes back exactly: convert it, or use register_value()"
    if issubclass(cls, Iterator):
        return "pass list(…) of it"
    return "pass what it consists of, or register the class by register_value()"
