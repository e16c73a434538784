"""Scenes: one order each, so that the list has something of every state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.core.management import call_command
from django.db import transaction

from django_durable import Execution
from testproject.shop.models import Order, OrderLine
from testproject.shop.workflows import fulfil

__all__ = ["Scene", "play_scenes"]

NOW = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What came of one order, and what one can do about it."""

    key: str
    status: str
    story: str


def play_scenes() -> list[Scene]:
    """Place the orders and run a worker until nothing is due."""
    placed = [(place(), story) for place, story in _scripts()]
    call_command("durable", "worker", "--until-idle", verbosity=0)
    # What made its payment impossible to book has been put right since: now a retry goes through.
    Order.objects.filter(status=Order.Status.CANCELLED).update(status=Order.Status.NEW)
    return [_scene(execution, story) for execution, story in placed]


def _scripts() -> Iterator[tuple[Callable[[], Execution[Any]], str]]:
    yield _reviewed, "was paid, reviewed and shipped"
    yield _unreviewed, "waits for its review: cancel it, or send the signal 'reviewed' from the command line"
    yield _kept_back, "sleeps for two days"
    yield _refused, "failed after the payment; retry it: it completes, and nothing is charged twice"
    yield _paused, "was paused before it began; resume it"
    yield _cancelled, "was cancelled"


def _reviewed() -> Execution[Any]:
    execution = _order(pause=NOW)
    execution.signal("reviewed", {"by": "the day shift", "remark": "looks <b>fine</b>"})
    return execution


def _unreviewed() -> Execution[Any]:
    return _order(pause=NOW)


def _kept_back() -> Execution[Any]:
    return _order(pause=timedelta(days=2))


def _refused() -> Execution[Any]:
    execution = _order(pause=NOW, status=Order.Status.CANCELLED)
    execution.signal("reviewed", {"by": "the day shift"})
    return execution


def _paused() -> Execution[Any]:
    execution = _order(pause=NOW)
    execution.pause(actor="the night shift", reason="the warehouse is closed")
    return execution


def _cancelled() -> Execution[Any]:
    execution = _order(pause=NOW)
    execution.cancel(actor="the night shift", reason="ordered twice")
    return execution


def _order(*, pause: timedelta, status: Order.Status = Order.Status.NEW) -> Execution[Any]:
    with transaction.atomic():
        order = Order.objects.create(status=status)
        OrderLine.objects.create(order=order, sku="article-1", quantity=2, unit_price=Decimal("12.50"))
        return fulfil.using(key=f"order-{order.pk}", tags={"shop": "demo"}).start(order.pk, pause=pause)


def _scene(execution: Execution[Any], story: str) -> Scene:
    now = Execution.objects.locate(execution.pk)
    return Scene(key=now.key or "", status=now.status, story=story)
