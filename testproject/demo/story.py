"""Story: what became of the data planes, as far as the tenants' executions do not tell it themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from testproject.demo.evidence import Evidence, Progress

__all__ = ["Move", "Story", "of_tenant", "while_down"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A tenant's way from plane to plane, and how many of its executions had not ended yet."""

    source: str
    target: str
    unfinished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """``down_at`` and ``up_at``: when one plane, ``stopped``, had become unreachable and when it was to come back."""

    placements: Mapping[str, str]
    """The plane of each tenant at the end."""
    stopped: str
    stopped_tenants: frozenset[str]
    """Who lived on the stopped plane then."""
    down_at: datetime
    up_at: datetime
    refused: int
    """Orders that were refused while it was down, and placed later."""
    moves: Mapping[str, Move]
    leftovers: list[str]
    """What should not be there any more, or not there."""

    @property
    def down_seconds(self) -> float:
        """How long it was down."""
        return (self.up_at - self.down_at).total_seconds()


def of_tenant(evidence: Evidence, tenant: str) -> list[Progress]:
    """The tenant's orders."""
    return [one for one in evidence.orders if one.tenant == tenant]


def while_down(evidence: Evidence, story: Story, tenant: str) -> int:
    """How many of the tenant's executions ended while the plane was down."""
    ends = [one.finished_at for one in of_tenant(evidence, tenant)]
    return sum(end is not None and story.down_at <= end <= story.up_at for end in ends)
