"""BodyParser: a JSON object from the request's body, of a bounded size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from django_durable.conf import config
from django_durable.errors import PayloadTooLarge

__all__ = ["BodyParser"]

AROUND = 65_536
"""Bytes for what stands around the one value that a body carries."""


class BodyParser(BaseParser):
    """UTF-8 JSON as RFC 8259 has it: no NaN, no infinity."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """The object. Raises ``ParseError``, ``PayloadTooLarge``."""
        # What is stored may be shorter than what is sent, by escapes; nothing that fits is refused here.
        most = 2 * config().max_payload_bytes + AROUND
        raw = stream.read(most + 1)
        if len(raw) > most:
            raise PayloadTooLarge(f"the body has more than {most} bytes")
        try:
            found = json.loads(raw.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
        except RecursionError:
            raise ParseError("the body is nested too deeply") from None
        except ValueError as error:
            raise ParseError(f"the body must be JSON: {error}") from None
        if not isinstance(found, dict):
            raise ParseError(f"the body must be a JSON object, not {type(found).__name__}")
        return found


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return number
