"""Future: the result of something that runs elsewhere, and Batch: the results of many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from django_durable.authoring.call import Call
from django_durable.authoring.source import Offer
from django_durable.engine.transitions.outcome_source import OutcomeSource

R = TypeVar("R")


class Future(Generic[R]):
    """What ``ctx.submit`` gives. It may be awaited after anything, in any order, in a later turn."""

    def __init__(self, call: Call[R], position: int, wait: Callable[[Future[R]], R]) -> None:
        self.call = call
        self.position = position
        self._wait = wait

    def result(self) -> R:
        """The result. Raises ``StepFailed`` or ``ChildFailed``, the same at every replay."""
        return self._wait(self)

    def offer(self, number: int) -> Offer:
        """For ``ctx.wait_any``."""
        label = f"future:{self.position}"
        return Offer(label=label, source=OutcomeSource(self.position, number))

    def __repr__(self) -> str:
        return f"<Future {self.call.name} at {self.position}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of a batch; ``value`` of one that succeeded, ``error`` of one that failed."""

    index: int
    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What ``ctx.map_batch`` gives: every item is in one of the three, in the order of the input."""

    succeeded: list[Item] = field(default_factory=list)
    failed: list[Item] = field(default_factory=list)
    not_started: list[Item] = field(default_factory=list)

    def results(self) -> list[Any]:
        """The values of what succeeded, in the order of the input."""
        return [item.value for item in self.succeeded]
