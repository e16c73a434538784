"""Finding: one kind of fault, how often it was found, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from django_durable.operators.stats import count_up_to

__all__ = ["ERROR", "INFO", "LISTED", "MOST_COUNTED", "WARNING", "Finding", "Seen", "look_at"]

ERROR, WARNING, INFO = "error", "warning", "info"
LISTED = 20
"""Executions that a finding names, at most."""
MOST_COUNTED = 10_000
"""Where counting stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``code`` is stable; ``explanation`` and ``advice`` are for people, in the active language."""

    code: str
    severity: str
    count: int
    explanation: str
    advice: str
    plane: str
    """Where: the plane's name, or the alias of the spine's own database."""
    executions: tuple[UUID, ...] = ()
    """The first of them, at most ``LISTED``."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Names and numbers of this kind of fault."""

    def as_dict(self) -> dict[str, Any]:
        """The form of ``doctor --json``."""
        return {
            "code": self.code,
            "severity": self.severity,
            "plane": self.plane,
            "count": self.count,
            "executions": [str(execution_id) for execution_id in self.executions],
            "explanation": self.explanation,
            "advice": self.advice,
            "details": dict(self.details),
        }


@dataclass(frozen=True, slots=True)
class Seen:
    """The first execution ids of a query, and how many there are up to ``MOST_COUNTED``."""

    executions: tuple[UUID, ...]
    count: int

    def __bool__(self) -> bool:
        return self.count > 0

    @classmethod
    def of(cls, executions: Sequence[UUID]) -> Seen:
        """All of these."""
        return cls(tuple(executions[:LISTED]), len(executions))


def look_at(rows: QuerySet[Any, Any], column: str) -> Seen:
    """The first ids, and the count where there are more: one statement where nothing is wrong."""
    ids = tuple(rows.values_list(column, flat=True)[: LISTED + 1])
    count = len(ids) if len(ids) <= LISTED else count_up_to(rows, MOST_COUNTED)
    return Seen(ids[:LISTED], count)
