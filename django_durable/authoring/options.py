"""What a declaration says of a workflow, and what ``using`` says of one start."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django_durable.authoring.budget import check_budget
from django_durable.authoring.singleton import Singleton
from django_durable.dispatch.flow_queue import FlowQueue, queue_name
from django_durable.durations import aware, seconds
from django_durable.engine.transitions.hint_lease import LEVELS
from django_durable.models.columns import check_name


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowOptions:
    """What the declaration says."""

    timeout: float | None = None
    queue: str | None = None
    priority: int = 0
    max_recoveries: int | None = None
    budget: Any = None
    singleton: Singleton | None = None
    pin: bool = False
    rest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """What ``using`` says of one start."""

    key: str | None = None
    on_conflict: str = "existing"
    tenant: str | None = None
    run_after: datetime | float | timedelta | None = None
    priority: int | None = None
    queue: str | FlowQueue | None = None
    timeout: float | None = None
    parent_close: str = "cancel"
    tags: dict[str, Any] = field(default_factory=dict)
    correlation_id: str = ""
    budget: Any = None


def checked(options: StartOptions) -> StartOptions:
    """The options with every value checked and durations in seconds. Raises ``ValueError``, ``TypeError``."""
    if options.key is not None:
        check_name(options.key, "key")
    if options.tenant is not None:
        check_name(options.tenant, "tenant")
    if options.queue is not None:
        check_name(queue_name(options.queue), "queue")
    check_name(options.correlation_id, "correlation_id", empty=True)
    if options.on_conflict not in ("existing", "error", "restart"):
        raise ValueError(f"on_conflict must be existing, error or restart, not {options.on_conflict!r}")
    if options.parent_close not in ("cancel", "abandon"):
        raise ValueError(f"parent_close must be cancel or abandon, not {options.parent_close!r}")
    check_priority(options.priority)
    if isinstance(options.run_after, datetime):
        aware(options.run_after, name="run_after")
    elif options.run_after is not None:
        seconds(options.run_after, name="run_after")
    timeout = None if options.timeout is None else seconds(options.timeout, name="timeout")
    queue = None if options.queue is None else queue_name(options.queue)
    tags, budget = check_tags(options.tags or {}), check_budget(options.budget)
    return replace(options, queue=queue, timeout=timeout, tags=tags, budget=budget)


def check_priority(priority: int | None) -> None:
    """One of five levels, -2 to 2. Raises ``ValueError``."""
    if priority is None:
        return
    if isinstance(priority, bool) or not isinstance(priority, int) or priority not in LEVELS:
        raise ValueError(f"priority must be an int from -2 to 2, not {priority!r}")


def check_tags(tags: dict[str, Any]) -> dict[str, Any]:
    """Tags are searchable: names are identifiers, values str, int or bool."""
    for name, tag in tags.items():
        check_name(name, "tag name", maximum=64)
        if type(tag) not in (str, int, bool):
            raise TypeError(f"tag {name!r} must be a str, int or bool, not {type(tag).__name__}")
        if isinstance(tag, str):
            check_name(tag, f"tag {name!r}", empty=True)
    return dict(tags)
