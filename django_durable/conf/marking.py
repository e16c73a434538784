"""Mark a text for the message catalogue without reading the settings, which may not be there at import."""

from __future__ import annotations


def gettext_noop(text: str) -> str:
    """The text itself; ``makemessages`` finds it by this function's name."""
    return text
