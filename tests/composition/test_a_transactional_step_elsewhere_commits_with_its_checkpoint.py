"""Submitted or mapped, a transactional step still commits its writes and its checkpoint together, or neither."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Context, Execution, Retry, StepFailed, current_step, step, workflow
from django_durable.testing import DurableKit, live_worker
from testproject.shop.models import Order

pytest_plugins = ["django_durable.testing.plugin"]


@step(transactional=True, retry=Retry(max_attempts=2, initial=0))
def enter(number: int) -> int:
    order = Order.objects.create(payment_id=str(number))
    if number < 0 or (number == 7 and current_step().attempt == 1):
        raise ValueError(f"not {number}")
    return int(order.pk)


@workflow("transactions.elsewhere")
def enter_all(ctx: Context, numbers: list[int]) -> Any:
    future = ctx.submit(enter, numbers[0])
    rest = ctx.map_batch(enter, numbers[1:])
    try:
        first = future.result()
    except StepFailed as failed:
        first = failed.attempts
    return first, rest.results(), len(rest.failed)


def entered() -> dict[str, int]:
    return dict(Order.objects.values_list("payment_id", "pk"))


def test_what_failed_has_written_nothing(durable: DurableKit) -> None:
    execution = durable.run(enter_all, [-1, 2, 7, -3])
    written = entered()
    assert set(written) == {"2", "7"}
    assert execution.output == (2, [written["2"], written["7"]], 1)


@pytest.mark.django_db(transaction=True)
def test_many_that_end_at_once_wake_the_execution_and_wait_for_nobody() -> None:
    numbers = list(range(10, 40))
    executions: list[Execution[Any]] = [enter_all.start(numbers) for _ in range(2)]
    with live_worker():
        results = [execution.result(timeout=60) for execution in executions]
    assert Order.objects.count() == 2 * len(numbers)
    assert [(len(rest), failed) for _first, rest, failed in results] == [(29, 0)] * 2
