"""Values: how stored values and errors are shown: as type and size, or in full on request, secrets masked."""

from __future__ import annotations

from typing import Any

from django_durable.conf import config
from django_durable.errors import UndecodableValue
from django_durable.operators.inspect import OWN_WORDS
from django_durable.payloads import decode, describe_failure, redact, redact_text, summarize, to_plain, to_tagged

__all__ = ["Values"]


class Values:
    """Shows stored texts. One that cannot be read shows as that, and breaks nothing else."""

    def __init__(self, *, payloads: bool, tagged: bool = False) -> None:
        self.payloads = payloads
        self.tagged = tagged

    def value(self, text: str | None) -> Any:
        """A stored value as plain JSON, or tagged with its types, or its summary; ``None`` for nothing."""
        if text is None:
            return None
        if not self.payloads:
            return summarize(text)
        try:
            if self.tagged:
                return to_plain(to_tagged(text, globs=config().redact))
            return redact(decode(text), config().redact)
        except (UndecodableValue, OSError) as error:  # OSError: a codec's key service is away
            return f"<{summarize(text)}: {error}>"

    def error(self, text: str | None, *, status: str = "") -> dict[str, Any] | None:
        """A stored error: its type, and its texts or their size; ``None`` for nothing."""
        if text is None:
            return None
        found = describe_failure(text)
        del found["lineage"]
        for name in ("message", "traceback"):
            words = str(found[name])
            if self.payloads or (name == "message" and status in OWN_WORDS):
                found[name] = redact_text(words, config().redact)
            else:
                found[name] = f"str, {len(words)} characters"
        return found
