"""Declared: what ``Workflow.schedule`` says of one schedule, and all that this code declares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django_durable.authoring.registry import all_workflows
from django_durable.authoring.timing import Timing
from django_durable.durations import seconds
from django_durable.models import CatchUp, Overlap

if TYPE_CHECKING:
    from django_durable.authoring.workflow import Workflow

__all__ = ["UNANCHORED", "Declared", "Policy", "declared_schedules", "policy_of", "schedule_conflicts"]

CATCH_UP_ALL = 100
"""How many missed times ``catch_up="all"`` starts, at most; ``("all", n)`` says another number."""
MOST_CATCH_UP = 1_000
LONGEST_JITTER = 24 * 3600.0
UNANCHORED = datetime(2000, 1, 1, tzinfo=UTC)
"""In place of an anchor, which is stored when a declaration is first seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What to do where times meet what runs, or were missed."""

    overlap: str = Overlap.SKIP.value
    catch_up: str = CatchUp.LATEST.value
    catch_up_most: int = CATCH_UP_ALL
    jitter: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One schedule as the code has it. The anchor is the row's: it is stored when it is first seen."""

    name: str
    tenant: str
    workflow: Workflow[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    timing: Timing
    policy: Policy

    @property
    def identity(self) -> tuple[str, str]:
        """What no two of them share."""
        return self.tenant, self.name

    def digest(self, plain_input: str) -> str:
        """The same as long as nothing of the declaration changes, whatever happens to the code around it."""
        timing, policy = self.timing, self.policy
        said = (
            *(self.workflow.name, plain_input, timing.cron, timing.timezone, timing.every),
            *(policy.overlap, policy.catch_up, policy.catch_up_most, policy.jitter),
        )
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def policy_of(overlap: object, catch_up: object, jitter: object, *, every: float | None) -> Policy:
    """The policies, checked. ``catch_up`` is none, latest, all, or ("all", n)."""
    if overlap not in Overlap.values:
        raise ValueError(f"overlap must be one of {', '.join(Overlap.values)}, not {overlap!r}")
    kind, most = catch_up if isinstance(catch_up, (tuple, list)) and len(catch_up) == 2 else (catch_up, None)
    if kind not in CatchUp.values or (most is not None and kind != "all"):
        raise ValueError(f"catch_up must be none, latest, all or ('all', 10), not {catch_up!r}")
    if most is None:
        most = CATCH_UP_ALL
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_CATCH_UP:
        raise ValueError(f"catch_up=('all', n): n must be an int from 1 to {MOST_CATCH_UP:,}, not {most!r}")
    longest = LONGEST_JITTER if every is None else min(every, LONGEST_JITTER)
    spread = 0.0 if jitter is None else seconds(jitter, name="jitter", maximum=longest)
    return Policy(overlap=str(overlap), catch_up=str(kind), catch_up_most=most, jitter=spread)


def declared_schedules() -> dict[tuple[str, str], Declared]:
    """Every schedule that this code declares, by tenant and name; of several versions the newest's word counts.

    Where two workflows declare one, the first by name has it; ``schedule_conflicts`` tells.
    """
    return _read()[0]


def schedule_conflicts() -> list[tuple[Declared, Declared]]:
    """Schedules that a workflow declares although another one has them: theirs first."""
    return _read()[1]


def _read() -> tuple[dict[tuple[str, str], Declared], list[tuple[Declared, Declared]]]:
    found: dict[tuple[str, str], Declared] = {}
    refused: list[tuple[Declared, Declared]] = []
    for workflow in all_workflows():
        for identity, declared in workflow.schedules.items():
            other = found.get(identity)
            if other is None or other.workflow.name == workflow.name:
                found[identity] = declared
            else:
                refused.append((other, declared))
    return found, refused
