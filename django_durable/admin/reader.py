"""Reader: what one user sees of stored values. Whole for those who may, type and size for the others."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_durable.conf import config
from django_durable.errors import UndecodableValue, qualified_name
from django_durable.operators.inspect import OWN_WORDS
from django_durable.operators.permissions import PermissionHolder, may
from django_durable.payloads import decode, describe_failure, redact, redact_text, summarize

__all__ = ["Failure", "Reader", "Shown", "kind_of_start"]

ROOM: Final = 50_000
"""Characters of a value that is shown by itself."""
SHORT: Final = 80
OF_FAILURE: Final = ("type", "message", "traceback", "lineage")
KINDS: Final = {"{": "dict", "[": "list", '"': "str", "t": "bool", "f": "bool", "n": "None"}
TAG: Final = re.compile(r'\{"\$(?:type:)?([^"]{1,80})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One value on a page: its type and size, and its text as JSON where the user may see it."""

    summary: str
    text: str | None = None
    note: str = ""
    """Why the text is not there or not whole."""

    @property
    def is_short(self) -> bool:
        """Whether it fits into a line of a table."""
        return self.text is not None and not self.note and len(self.text) <= SHORT and "\n" not in self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A stored error on a page. Its type is for everybody, its texts are values."""

    type: str
    message: Shown
    traceback: Shown
    more: dict[str, str] = field(default_factory=dict)

    @property
    def short_type(self) -> str:
        """The class's own name."""
        return self.type.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads stored texts for one user. Never raises: a text that cannot be read shows as that."""

    payloads: bool

    @classmethod
    def of(cls, user: PermissionHolder) -> Reader:
        """The reader for this user's permissions."""
        return cls(payloads=may(user, "view_payload"))

    def value(self, stored: str | None, *, room: int = ROOM) -> Shown | None:
        """A stored value with its secrets masked; ``None`` where there is none."""
        if stored is None:
            return None
        summary = summarize(stored)
        if not self.payloads:
            return Shown(summary=summary)
        try:
            plain = redact(decode(stored), config().redact)
            text = as_json(plain)
        except UndecodableValue as error:
            return Shown(summary=summary, note=_("It cannot be read here: %s") % error.message)
        except Exception as error:  # whatever is in the column, or in the way of a codec, the page must come
            return Shown(summary=summary, note=_("It cannot be read here: %s") % qualified_name(type(error)))
        return cut(summary, text, room)

    def failure(self, stored: str | None, *, status: str = "", room: int = ROOM) -> Failure | None:
        """A stored error; ``None`` where there is none. ``status`` is how the run ended, if it is a run's."""
        if stored is None:
            return None
        found = describe_failure(stored)
        more = {name: member for name, member in found.items() if name not in OF_FAILURE}
        return Failure(
            type=str(found["type"]),
            message=self._words(found["message"], room, visible=status in OWN_WORDS),
            traceback=self._words(found["traceback"], room),
            more={name: str(member) for name, member in redact(more, config().redact).items()},
        )

    def _words(self, words: Any, room: int, *, visible: bool = False) -> Shown:
        text = str(words)
        summary = characters(len(text))
        if not (self.payloads or visible):
            return Shown(summary=summary)
        return cut(summary, redact_text(text, config().redact), room)


def as_json(plain: Any) -> str:
    """In one line where that is short."""
    line = json.dumps(plain, ensure_ascii=False)
    return line if len(line) <= SHORT else json.dumps(plain, ensure_ascii=False, indent=2)


def cut(summary: str, text: str, room: int) -> Shown:
    """The beginning of a text that is too long for its place, and where to find the rest."""
    if len(text) <= room:
        return Shown(summary=summary, text=text)
    note = _("Cut here: %s more. `manage.py durable show` and `history` with --payloads print all of it.")
    return Shown(summary=summary, text=text[:room] + "…", note=note % characters(len(text) - room))


def characters(count: int) -> str:
    return ngettext("%d character", "%d characters", count) % count


def kind_of_start(start: str) -> str:
    """The type of a stored value by its first characters, for a value that is too large to be fetched."""
    tag = TAG.match(start)
    return tag[1] if tag else KINDS.get(start[:1], "value")
