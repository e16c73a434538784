"""The sweep of retention: what RETENTION lets go, some of it a pass. No user code."""

from __future__ import annotations

import time

from django_durable.engine.retention import Position, Terms
from django_durable.operators.prune import prune_place

SECONDS = 2.0
"""How long one pass goes on, at most a transaction longer: other sweeps of the process wait for it."""

_positions: dict[str, Position | None] = {}


def prune_ended(plane: str) -> int:
    """Trees past their period are removed, and what a pass that died has left; how many trees.

    Goes on where this process stopped: what must stay hides nothing behind it. After the last it begins again.
    """
    ends = time.monotonic() + SECONDS
    pruned = prune_place(
        plane, Terms.of_settings(), after=_positions.get(plane), stop=lambda: time.monotonic() >= ends
    )
    _positions[plane] = pruned.position
    return pruned.trees
