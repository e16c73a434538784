"""What can be wrong with ``settings.DURABLE``, told with the key, the value and what to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from django_durable.conf.marking import gettext_noop

Fault = Literal["shape", "unknown", "type", "value", "combination"]

_MESSAGES: Final[Mapping[str, str]] = {
    "shape": gettext_noop("settings.DURABLE is %(value)s (%(type)s), but must be a dict."),
    "unknown": gettext_noop("DURABLE has no key %(key)s."),
    "type": gettext_noop("DURABLE[%(key)s] is %(value)s (%(type)s), but must be %(expected)s."),
    "value": gettext_noop("DURABLE[%(key)s] is %(value)s, but must be %(expected)s."),
    "combination": gettext_noop("DURABLE[%(key)s] is %(value)s, but must be at most %(other)s, which is %(bound)s."),
}
_HINTS: Final[Mapping[str, str]] = {
    "shape": gettext_noop("Write DURABLE = {…} with upper-case keys, or leave it out."),
    "unknown": gettext_noop("The keys are %(keys)s."),
    "suggestion": gettext_noop("Did you mean %(suggestion)s?"),
    "type": gettext_noop("Correct it, or leave the key out for its default, %(default)s."),
    "value": gettext_noop("Correct it, or leave the key out for its default, %(default)s."),
    "combination": gettext_noop("Lower the one or raise the other."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One fault of the setting: its kind, the key it is at, and the parts of its text.

    The text is made on demand: ``message(gettext)`` translates it, ``message()`` is English and works before
    the app registry is ready, when a translation would raise.
    """

    fault: Fault
    key: str
    expected: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)

    def message(self, translate: Callable[[str], str] = str) -> str:
        """What is wrong, with the key and the value."""
        return translate(_MESSAGES[self.fault]) % self._parts(translate)

    def hint(self, translate: Callable[[str], str] = str) -> str:
        """What to do about it."""
        template = _HINTS["suggestion" if "suggestion" in self.parts else self.fault]
        return translate(template) % self._parts(translate)

    def _parts(self, translate: Callable[[str], str]) -> dict[str, str]:
        expected = translate(self.expected) if self.expected else ""
        return {"key": repr(self.key), "expected": expected, **self.parts}
