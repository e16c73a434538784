"""Scenario: what is done to one execution, by whom, in which order, and how it must end whatever dies meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tests.crash.acts import Act
from tests.crash.faults import BETWEEN_DATABASES, STANDING_STILL, Mode
from tests.crash.run import Run

__all__ = ["Scenario"]

ALL = tuple(mode for mode in Mode if mode not in (Mode.FROZEN_FOR_LONG, *BETWEEN_DATABASES))
NOT_FROZEN = tuple(mode for mode in ALL if mode not in STANDING_STILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The script and the expectation. Labels and orders are named by what follows the run's mark."""

    name: str
    script: Callable[[Run], list[Act | timedelta | Callable[[], None]]]
    status: tuple[str, ...] = ("completed",)
    output: Callable[[str], Any] | None = None
    labels: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    """Labels that a crash may leave out, or bring about."""
    orders: tuple[str, ...] = ()
    letters: int = 0
    maybe_letters: int = 0
    notes: Mapping[str, int] = field(default_factory=dict)
    of: str = ""
    """Whose runs have the letters and notes, by the workflow's name; empty: every run."""
    unread: int = 0
    executions: int = 1
    times: Mapping[str, int] = field(default_factory=dict)
    """How often a label's effect happens, where that is not once an execution."""
    reopens: bool = False
    """Whether an operator opens it again: attempts then start anew, and failures are removed."""
    moves: int = 0
    """How often the tenant moves to another plane."""
    repeats: int = 0
    """How often a body is started again without any fault."""
    recover_at_once: bool = True
    """Whether a killed worker is replaced before the script goes on; otherwise the next acts meet its remains."""
    sweep_from: int = 0
    """The first item of the script to be swept: what is before it, another scenario sweeps."""
    modes: tuple[Mode, ...] = ALL
    check: Callable[[Run], None] = lambda run: None
