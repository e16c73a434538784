"""Whatever runs elsewhere may end in any order, on any worker: what is recorded, and in which order, is the same."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from django_durable import ChildFailed, Context, Execution, FatalError, StepFailed, step, workflow
from django_durable.engine.claimed import Claimed
from django_durable.models import DispatchHint
from tests.driving import claim, lease_of, run_claim

pytestmark = pytest.mark.django_db

ORDERS = int(os.environ.get("ORDERS", "300" if os.environ["TEST_DB"] == "sqlite" else "40"))
"""PostgreSQL, where each takes several times as long, plays all three hundred in ``make evidence``."""
AT_A_TIME = ORDERS // 4


@step
def half(number: int) -> int:
    if number % 2:
        raise FatalError(f"{number} is odd")
    return number // 2


@workflow("orders.leaf")
def leaf(ctx: Context, number: int) -> int:
    return ctx.step(half, number)


@workflow("orders.everything")
def everything(ctx: Context) -> list[Any]:
    early = ctx.submit(half, 2)
    children = [ctx.submit(leaf, number) for number in (4, 5)]
    mapped = ctx.map([half.bind(6), leaf.bind(8), half.bind(10)], concurrency=2)
    batch = ctx.map_batch(half, [1, 2, 4], concurrency=3)
    told = [getattr(one, "message", one) for one in ctx.gather(*children, early, return_exceptions=True)]
    try:
        ctx.gather(ctx.submit(half, 7), ctx.submit(leaf, 9), ctx.submit(half, 12))
    except (StepFailed, ChildFailed) as error:
        told.append(error.message)
    return [mapped, batch.results(), [item.index for item in batch.failed], told]


def _play(order: random.Random) -> Execution[Any]:
    execution = everything.start()
    hand: list[Claimed] = []
    while True:
        hand += claim(order.randint(1, 4))
        if not hand:
            return Execution.objects.get(pk=execution.pk)
        claimed = hand.pop(order.randrange(len(hand)))
        run_claim(claimed, lease_of(claimed))


def _told(execution: Execution[Any]) -> list[Any]:
    """The history without times and ids."""
    shown = ("position", "kind", "name", "status", "attempts", "output")
    return [
        *([entry[name] for name in shown] + [(entry["error"] or {}).get("message")] for entry in execution.history()),
        execution.status,
        execution.output,
    ]


@pytest.mark.parametrize("first", range(1, ORDERS, AT_A_TIME))
def test_every_order_of_ends_gives_one_history(first: int) -> None:
    wanted = _told(_play(random.Random(0)))
    assert wanted[-1] == [[3, 4, 5], [1, 2], [0], [2, "5 is odd", 1, "7 is odd"]]
    for seed in range(first, first + AT_A_TIME):
        assert _told(_play(random.Random(seed))) == wanted, f"seed {seed}"
    assert not DispatchHint.objects.exists()
