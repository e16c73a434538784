"""Output: data to stdout as a table or as JSON, talk to stderr.

Keys, reasons and error texts come from users: what is not printable is escaped, so that none of it reaches the
terminal as a command.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import OutputWrapper

__all__ = ["Output", "cell", "printable"]

GAP = "  "
NOTHING = "-"


class Output:
    """Where one call writes. ``as_json`` is what the caller asked for."""

    def __init__(
        self, stdout: OutputWrapper, stderr: OutputWrapper, *, as_json: bool = False, verbosity: int = 1
    ) -> None:
        self.as_json = as_json
        self._stdout = stdout
        self._stderr = stderr
        self._verbosity = verbosity

    def line(self, text: str = "") -> None:
        """One line of data."""
        self._stdout.write(encodable(text, self._stdout))

    def document(self, value: Any) -> None:
        """The data as one JSON document; times in ISO 8601, UTC."""
        self._stdout.write(json.dumps(value, indent=2, default=json_form))

    def table(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, indent: str = "") -> None:
        """Rows as aligned text under a header, the columns in this order; nothing but the header for none."""
        heads = [column.replace("_", " ").upper() for column in columns]
        lines = [heads, *([cell(row[column]) for column in columns] for row in rows)]
        widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
        for line in lines:
            padded = GAP.join(text.ljust(width) for text, width in zip(line, widths, strict=True))
            self.line(indent + padded.rstrip())

    def pairs(self, values: Mapping[str, Any], *, indent: str = "") -> None:
        """Names and values, one a line, aligned; what is ``None`` is left out."""
        shown = {name.replace("_", " "): cell(value) for name, value in values.items() if value is not None}
        width = max(map(len, shown), default=0)
        for name, text in shown.items():
            self.line(f"{indent}{name.ljust(width)}{GAP}{text}".rstrip())

    def talk(self, text: str) -> None:
        """Something to tell a person; silent at ``--verbosity 0``."""
        if self._verbosity > 0:
            self._stderr.write(encodable(printable(text), self._stderr), lambda plain: plain)
            self._stderr.flush()

    def flush(self) -> None:
        """Hand over what is still buffered. Raises ``BrokenPipeError`` where nobody reads any more."""
        self._stdout.flush()


def cell(value: Any) -> str:
    """One value in a line of text."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.3f} s"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, (dict, list, tuple)):
        return printable(json.dumps(value, ensure_ascii=False, default=json_form))
    return printable(str(value))


def printable(text: str) -> str:
    """The text with every character escaped that a terminal would act on."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def encodable(text: str, stream: OutputWrapper) -> str:
    """The text with escapes for what the stream's encoding lacks, so that no output ends in an error."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def json_form(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)
