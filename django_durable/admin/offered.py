"""ACTS: every verb that the admin offers."""

from __future__ import annotations

from typing import Final

from django_durable.admin.acts import Act, Cancel, CancelAtOnce, Pause, Resume, Retry
from django_durable.admin.acts_told import Decide, Fork, Rerun, Signal, Update

__all__ = ["ACTS"]

ACTS: Final[dict[str, Act]] = {
    act.verb: act
    for act in (
        Retry(),
        Cancel(),
        CancelAtOnce(),
        Pause(),
        Resume(),
        Signal(),
        Update(),
        Decide(),
        Fork(),
        Rerun(),
    )
}
"""In the order of its buttons."""
