"""Update: a message whose sender may wait for an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django_durable.errors import InvalidTransition


class Update:
    """What ``ctx.wait_for_update`` returns. Made by the engine; valid for its own turn only."""

    __slots__ = ("_answer", "_replied", "name", "payload")

    def __init__(self, name: str, payload: Any, answer: Callable[[Any], None]) -> None:
        self.name = name
        self.payload = payload
        self._answer = answer
        self._replied = False

    def __repr__(self) -> str:
        return f"<Update {self.name!r}>"

    def reply(self, value: Any = None) -> None:
        """Answer the sender, once. It takes a position: the answer is stored with its checkpoint.

        Raises ``InvalidTransition`` for a second reply, ``UnserializableValue`` for what cannot be stored.
        """
        if self._replied:
            raise InvalidTransition(f"update {self.name!r} has been answered already; an update takes one reply")
        self._answer(value)
        self._replied = True
