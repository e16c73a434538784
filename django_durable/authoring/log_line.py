"""A line of a step's log as it is stored: whatever it was given, it costs the step nothing but a little room."""

from __future__ import annotations

import json
import time
from typing import Any

from django_durable.conf import config
from django_durable.payloads import redact, redact_text

LINE_LENGTH = 2_000
"""Characters kept of one line: its message first, then its fields."""

_OWN = ("at", "message")


def log_line(message: object, fields: dict[str, Any]) -> dict[str, Any]:
    """The line as plain JSON, secrets masked, cut to ``LINE_LENGTH``. Never raises.

    The result of a body is worth more than its log: a value that has no form is shown by its class.
    """
    globs = config().redact
    text = redact_text(_text_of(message), globs)[:LINE_LENGTH]
    room = LINE_LENGTH - len(text)
    line: dict[str, Any] = {"at": time.time(), "message": text}
    for name, value in _plain(fields, globs).items():
        shown = json.dumps(value)
        room -= len(name) + min(len(shown), max(room, 0))
        line[f"{name}_" if name in _OWN else name] = value if room >= 0 else f"{shown[: max(room, 0)]}…"
        if room <= 0:
            break
    return line


def _plain(fields: dict[str, Any], globs: tuple[str, ...]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = redact(fields, globs)
    except Exception:  # an object's own code, or what it has put in the place of its attributes
        return {name: _class_of(value) for name, value in fields.items()}
    for name, value in fields.items():
        if plain[name] == _class_of(value):
            plain[name] = redact_text(_text_of(value), globs)
    return plain


def _text_of(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return _class_of(value)


def _class_of(value: object) -> str:
    return f"<{type(value).__qualname__}>"
