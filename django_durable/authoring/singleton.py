"""Singleton: how many executions of a workflow may run at once for one key, and what becomes of those too many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django_durable.authoring.declaration import check_function
from django_durable.models.columns import check_name

POLICIES = ("queue", "reject", "cancel_running", "cancel_waiting")
MOST = 10_000
"""The largest limit and depth."""


@dataclass(frozen=True, kw_only=True)
class Singleton:
    """At most ``limit`` executions of a workflow are under way at once, for each tenant and key.

    ``key`` is a function of the workflow's arguments that returns a str; without one there is one key. ``policy``
    says what a start does that finds no slot: ``"queue"`` waits, first come first served; ``"reject"`` raises
    ``QueueFull``; ``"cancel_running"`` cancels the oldest that runs and all that wait, ``"cancel_waiting"`` all that
    wait. ``depth``: how many may wait, else ``QueueFull``; ``None``: any number. Raises ``ValueError`` or
    ``TypeError``.
    """

    key: Callable[..., str] | None = None
    limit: int = 1
    depth: int | None = None
    policy: str = "queue"

    def __post_init__(self) -> None:
        if self.key is not None:
            check_function(self.key, "singleton key")
        _check_number(self.limit, "limit", least=1)
        if self.depth is not None:
            _check_number(self.depth, "depth", least=0)
        if self.policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {self.policy!r}")

    def columns(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """What an order for these arguments says of it."""
        key = "" if self.key is None else check_name(self.key(*args, **kwargs), "singleton key", empty=True)
        return {
            "singleton": key,
            "singleton_limit": self.limit,
            "singleton_depth": self.depth,
            "singleton_policy": self.policy,
        }


def as_singleton(declared: Any) -> Singleton | None:
    """What a workflow's option says. Raises ``TypeError``."""
    if declared is None or declared is False:
        return None
    if isinstance(declared, Singleton):
        return declared
    if declared is True:
        return Singleton()
    if callable(declared):
        return Singleton(key=declared)
    raise TypeError(
        f"singleton must be True, a function of the arguments, or Singleton(…), not {type(declared).__name__}"
    )


def _check_number(number: object, name: str, *, least: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{name} must be an int, not {type(number).__name__}")
    if not least <= number <= MOST:
        raise ValueError(f"{name} must be between {least} and {MOST}, not {number}")
