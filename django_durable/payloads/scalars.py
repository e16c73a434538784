"""Numbers, text and bytes that plain JSON would change, to JSON and back."""

from __future__ import annotations

import math
import re
import struct
from base64 import b64decode, b64encode
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django_durable.payloads import tags

# JSON text has only UTF-16 escapes: these two characters of a Python str would come back as one.
JOINABLE: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
DIGITS_BITS: Final = 14_284  # the most bits of which every int has at most DIGITS_LIMIT digits
QUIET_NAN: Final = "7ff8000000000000"
CHUNK: Final = 600  # digits; less than the lowest limit that an interpreter accepts


def whole(number: Any) -> int:
    """The number, if it is an int and no bool."""
    if type(number) is not int:
        raise TypeError("not an integer")
    return number


def text_of(payload: Any) -> str:
    """The payload, if it is text."""
    if type(payload) is not str:
        raise TypeError("not a string")
    return payload


def write_str(value: str) -> str | dict[str, str]:
    """The text, or its tagged form where JSON would join two of its characters."""
    if value.isascii() or not JOINABLE.search(value):
        return value
    return {tags.STR: b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")}


def read_str(payload: Any) -> str:
    return b64decode(text_of(payload), validate=True).decode("utf-8", "surrogatepass")


def write_int(value: int) -> int | dict[str, str]:
    """The number, or hexadecimal where this interpreter, or another one, refuses its decimal digits."""
    if value.bit_length() <= DIGITS_BITS:
        try:
            repr(value)
        except ValueError:  # the process has a lower limit than the default
            pass
        else:
            return value
    return {tags.INT: f"{value:x}"}


def read_int(payload: Any) -> int:
    return int(text_of(payload), 16)


def read_long_digits(digits: str) -> int:
    """A decimal number that is longer than this interpreter's limit, up to the limit that writers keep to."""
    if len(digits.lstrip("-")) > tags.DIGITS_LIMIT:
        raise ValueError(f"a number of more than {tags.DIGITS_LIMIT} digits")
    number = 0
    for start in range(0, len(body := digits.lstrip("-")), CHUNK):
        chunk = body[start : start + CHUNK]
        number = number * 10 ** len(chunk) + int(chunk)
    return -number if digits.startswith("-") else number


def write_float(value: float) -> float | dict[str, str]:
    """The number, or its name where JSON has none for it."""
    if math.isfinite(value):
        return value
    if math.isinf(value):
        return {tags.FLOAT: "inf" if value > 0 else "-inf"}
    bits = struct.pack(">d", value).hex()
    return {tags.FLOAT: "nan" if bits == QUIET_NAN else f"nan:{bits}"}


def read_float(payload: Any) -> float:
    if payload in ("nan", "inf", "-inf"):
        return float(payload)
    name, _, bits = text_of(payload).partition(":")
    number: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    if name != "nan" or not math.isnan(number):
        raise ValueError("not a special number")
    return number


def write_bytes(value: bytes) -> str:
    """Base64."""
    return b64encode(value).decode("ascii")


def read_bytes(payload: Any) -> bytes:
    return b64decode(text_of(payload), validate=True)


def read_decimal(payload: Any) -> Decimal:
    """Exact, signalling NaN and exponent included: a constructor from text rounds and traps nothing."""
    return Decimal(text_of(payload))


def read_uuid(payload: Any) -> UUID:
    return UUID(text_of(payload))
