"""One function, one transaction on one plane. ``docs/explanation/architecture.md`` holds their table.

``SOURCES`` names, for each transition, the statuses that it may leave; a test compares it with that table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django_durable.models.execution import ACTIVE, RETRYABLE, TERMINAL

FORWARD = tuple(status for status in ACTIVE if status != "compensating")

TAKES_RESULTS = ("pending", "running", "waiting", "paused", "blocked")
"""Statuses of an execution that still wants what it has running elsewhere."""

SOURCES: dict[str, tuple[str, ...]] = {
    "start": (),
    "fire": (),
    "fork": (),
    "admit": ("pending",),
    "claim": ("pending", "waiting", "compensating", "blocked"),
    "recover": ("running", "compensating"),
    "append": ("running", "compensating"),
    "suspend": ("running", "compensating"),
    "release": ("running", "compensating"),
    "abandon": ("running", "compensating"),
    "wake": ("waiting",),
    "dispatch": ("running",),
    "claim_step": TAKES_RESULTS,
    "retry_step": TAKES_RESULTS,
    "settle_elsewhere": TAKES_RESULTS,
    "call_off": ("running",),
    "complete": ("running",),
    "continue": ("running",),
    "fail": ("running", "waiting", "pending", "paused"),
    "expire_attempt": ("running",),
    "time_out": FORWARD,
    "bury": ACTIVE,
    "block": ("pending", "running", "waiting", "compensating"),
    "unblock": ("blocked",),
    "cancel": ACTIVE,
    "adopt": ("pending", "waiting", "paused", "blocked"),
    "pause": ("pending", "running", "waiting", "blocked"),
    "resume": ("paused",),
    "decide": ("pending", "running", "waiting", "paused", "blocked"),
    "reopen": RETRYABLE,
    "bump_epoch": ACTIVE,
    "freeze": ACTIVE,
    "unfreeze": ACTIVE,
    "ask_undo": ("running",),
    "begin_undo": FORWARD,
    "end_undo": ("compensating",),
    "reopen_undo": RETRYABLE,
    "prune": TERMINAL,
}


def wants_results(row: Mapping[str, Any]) -> bool:
    """Whether a locked execution still wants what it has running elsewhere: it lives, and is not to end otherwise."""
    return row["status"] in TAKES_RESULTS and not row["ending_as"]


def listed(statuses: tuple[str, ...]) -> str:
    """The statuses as an SQL list of literals."""
    return ", ".join(f"'{status}'" for status in statuses)
