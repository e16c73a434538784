"""Planes that gave no answer: the others are shown, and the exit code says that something is missing."""

from __future__ import annotations

from collections.abc import Sequence

from django_durable.cli.exits import Exit, refusal
from django_durable.cli.output import Output
from django_durable.planes.places import Away

__all__ = ["describe_away", "refuse_away"]


def refuse_away(away: Sequence[Away], output: Output) -> None:
    """Raise the refusal that names them, after what could be shown; nothing where all answered."""
    if not away:
        return
    output.flush()
    raise refusal(describe_away(away), Exit.UNAVAILABLE)


def describe_away(away: Sequence[Away]) -> str:
    """Which they are, and why each gave no answer."""
    told = "; ".join(f"{one.place.label}: {one.reason}" for one in away)
    return f"{len(away)} data plane(s) gave no answer and are not shown: {told}"
