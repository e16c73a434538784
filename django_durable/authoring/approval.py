"""Approval: what somebody decided."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What ``ctx.wait_for_approval`` returns; ``actor`` is the name of who decided, ``data`` what they added."""

    approved: bool
    actor: str
    reason: str
    data: Any
    decided_at: datetime

    def __bool__(self) -> bool:
        raise TypeError("an approval is neither true nor false: ask approval.approved")
