"""FlowQueue: a queue with limits, declared in code; and which queues have limits, as this process knows it.

The rows on the spine are the truth. What is kept here says only where to look: a claim past the limits leaves
queues with a row alone, in its own SQL.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction

from django_durable.dispatch.hints import ONE_LANE
from django_durable.durations import seconds
from django_durable.models import DispatchHint, QueueLimit
from django_durable.models.columns import check_name

REFRESH_SECONDS = 5.0
"""A queue that got limits elsewhere is known here after so long; until then nothing of it is claimed here."""

Rate = tuple[int, float | timedelta]

_declared: dict[str, FlowQueue] = {}
_applied: set[tuple[str, str]] = set()
_known: dict[str, tuple[float, frozenset[str]]] = {}
_lock = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class FlowQueue:
    """A queue with limits, for executions and for steps elsewhere. They hold over all processes and planes.

    ``concurrency``: how many run at once, a lapsed lease among them until a second after its end. ``rate``:
    ``(n, period)``, at most n starts in any period of that length (seconds or timedelta); a start is the first turn
    of an execution or an attempt of a step. ``fair``: who takes turns, ``"tenant"``, ``"workflow"`` or ``None``.
    ``order``: ``"fifo"`` or ``"lifo"`` within one priority of one of them. Raises ``ValueError`` or ``TypeError``.

    The declaration makes a row that operators may change; it is applied again when the declaration changes.
    """

    name: str = field(kw_only=False)
    concurrency: int | None = None
    rate: Rate | None = None
    fair: str | None = "tenant"
    order: str = "fifo"

    def __post_init__(self) -> None:
        check_name(self.name, "queue name")
        check_limits(self.concurrency, self.rate)
        if (self.fair or "") not in QueueLimit.Fair.values:
            raise ValueError(f'fair must be "tenant", "workflow" or None, not {self.fair!r}')
        if self.order not in QueueLimit.Order.values:
            raise ValueError(f'order must be "fifo" or "lifo", not {self.order!r}')
        _declare(self)

    @property
    def values(self) -> dict[str, object]:
        """The columns of its row."""
        count, period = self.rate or (None, None)
        return {
            "concurrency": self.concurrency,
            "rate": count,
            "period_seconds": None if period is None else seconds(period, name="period"),
            "fair": self.fair or "",
            "sequence": self.order,
        }

    @property
    def declaration(self) -> str:
        """One text for all that it says."""
        return " ".join(f"{name}={item}" for name, item in self.values.items())


def _declare(queue: FlowQueue) -> None:
    known = _declared.get(queue.name)
    if known is not None and known != queue:
        raise ValueError(f"queue {queue.name!r} is declared twice, with other limits; declare it once and import it")
    _declared[queue.name] = queue


def check_limits(concurrency: object, rate: object) -> None:
    """Refuse what is no limit. Raises ``ValueError``, ``TypeError``."""
    _check_count(concurrency, "concurrency")
    if rate is not None:
        _check_rate(rate)


def _check_count(count: object, name: str) -> None:
    if count is None:
        return
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{name} must be an int or None, not {type(count).__name__}")
    if not 1 <= count <= 1_000_000:
        raise ValueError(f"{name} must be between 1 and 1000000, not {count}; pause the queue to stop it")


def _check_rate(rate: object) -> None:
    if not isinstance(rate, tuple) or len(rate) != 2:
        raise TypeError(f"rate must be a pair (starts, period), not {rate!r}")
    _check_count(rate[0], "rate")
    if rate[0] is None or seconds(rate[1], name="period") <= 0:
        raise ValueError(f"rate must name a number of starts and a period above zero, not {rate!r}")


def queue_name(queue: str | FlowQueue) -> str:
    """The name, where a queue may be given by its declaration."""
    return queue.name if isinstance(queue, FlowQueue) else queue


def declared_queues() -> frozenset[str]:
    """The queues that this process declares."""
    return frozenset(_declared)


def limited_queues(using: str, asked: frozenset[str]) -> frozenset[str]:
    """Which of these queues have limits, as far as this process knows; a declared one among them refreshes that."""
    read_at, known = _known.get(using, (float("-inf"), frozenset()))
    if (asked & (known | declared_queues())) and time.monotonic() - read_at > REFRESH_SECONDS:
        known = refresh(using)
    return asked & known


def refresh(using: str, *, at_most_every: float = 0.0) -> frozenset[str]:
    """Read which queues have limits, and make or change the rows of those that this process declares."""
    read_at, known = _known.get(using, (float("-inf"), frozenset()))
    if time.monotonic() - read_at < at_most_every:
        return known
    rows = dict(QueueLimit.objects.using(using).values_list("name", "declaration"))
    with _lock:
        for queue in list(_declared.values()):
            changed = rows.get(queue.name) != queue.declaration and (using, queue.name) not in _applied
            if queue.name not in rows or changed:
                _apply(using, queue)
            _applied.add((using, queue.name))
    known = frozenset(rows) | declared_queues()
    _known[using] = time.monotonic(), known
    return known


def forget(using: str) -> None:
    """What was read is no longer so."""
    _known.pop(using, None)


def _apply(using: str, queue: FlowQueue) -> None:
    with transaction.atomic(using=using):
        rows = QueueLimit.objects.using(using)
        _row, made = rows.update_or_create(
            name=queue.name, defaults={**queue.values, "declaration": queue.declaration}
        )
        if made:
            give_lanes(using, queue.name)


LANES_AT_ONCE = 1_000
"""Hints of one queue and state that get their lane in one pass."""


def give_lanes(using: str, queue: str) -> int:
    """Put what was published before the queue had limits into one lane; how many."""
    return sum(_give_lanes(using, queue, state) for state in DispatchHint.State.values)


def _give_lanes(using: str, queue: str, state: int) -> int:
    """A page of them, in the order of the index of what is due: no planner reads the whole table for that."""
    hints = DispatchHint.objects.using(using).filter(state=state, queue=queue, lane="")
    page = list(hints.order_by("state", "queue", "priority", "due_at").values_list("pk", flat=True)[:LANES_AT_ONCE])
    return hints.filter(pk__in=page).update(lane=ONE_LANE) if page else 0
