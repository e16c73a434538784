"""Who acts: a user, or a string."""

from __future__ import annotations

from typing import Any

from django_durable.engine.transitions.verbs import Attribution
from django_durable.models.columns import NAME_LENGTH


def attribution(actor: Any, reason: str, *, required: bool) -> Attribution:
    """The actor as text, with the reason. Raises ``ValueError`` for an empty actor where one is required."""
    name = "" if actor is None else _name_of(actor)
    if not name.strip() and (required or actor is not None):
        raise ValueError("actor must not be empty: pass the user, or a text that names who acts")
    if not isinstance(reason, str):
        raise TypeError(f"reason must be a str, not {type(reason).__name__}")
    return Attribution(_storable(name)[:NAME_LENGTH], _storable(reason))


def _name_of(actor: Any) -> str:
    if isinstance(actor, str):
        return actor
    get_username = getattr(actor, "get_username", None)
    return str(get_username()) if callable(get_username) else str(actor)


def _storable(text: str) -> str:
    """Without what no database stores: a byte of a shell's argument that is no UTF-8 must not fail the verb."""
    return text.replace("\x00", "").encode("utf-8", "backslashreplace").decode("utf-8")
