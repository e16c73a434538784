"""Column types that behave alike on every backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    # Generic for type checkers only.
    class _CharField(models.CharField[Any, Any]):
        _pyi_private_get_type: Any
else:
    _CharField = models.CharField

NAME_LENGTH = 255


class NameField(_CharField):
    """A name compared byte by byte: two keys that differ in case are two keys, on MariaDB too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", NAME_LENGTH)
        super().__init__(*args, **kwargs)

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        declared = super().db_type(connection)
        if connection.vendor == "mysql":
            return f"{declared} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        return declared


def check_name(value: str, what: str, *, maximum: int = NAME_LENGTH, empty: bool = False) -> str:
    """Refuse at the call what a backend would refuse, cut or compare differently later.

    Raises ``TypeError`` for anything but ``str``, ``ValueError`` for an empty name, one of more than
    ``maximum`` characters, and for NUL and lone surrogates, which PostgreSQL cannot store in a name.
    """
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    if not value and not empty:
        raise ValueError(f"{what} must not be empty")
    if len(value) > maximum:
        raise ValueError(f"{what} has {len(value)} characters; at most {maximum} are allowed")
    if "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError(f"{what} must not contain NUL or lone surrogate characters")
    return value
