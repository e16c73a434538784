"""Derived values: what a run's secret seed gives at a position. They are not written, so a crash changes none."""

from __future__ import annotations

import hashlib

DERIVED = "derived"
"""Kind of the record that a fork has where its source had such a value: the fork's own seed is another one."""
KINDS = ("random", "uuid")


def derive(seed: str, kind: str, position: int) -> bytes:
    """Thirty-two bytes, the same at every replay of this run."""
    return hashlib.sha256(f"{seed}:{kind}:{position}".encode()).digest()
