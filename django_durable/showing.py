"""A value in an error text: short, and never itself an error."""

from __future__ import annotations

LENGTH = 100


def shown(value: object) -> str:
    """The value's ``repr``, shortened; its type's name where that fails (an int of 5,000 digits has none)."""
    try:
        text = repr(value)
    except Exception:
        return f"<{type(value).__name__}>"
    return text if len(text) <= LENGTH else f"{text[:LENGTH]}…"
