"""The kit drives a workflow of days inside a plain TestCase: same claim and replay, no thread, no commit."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from decimal import Decimal
from typing import Any
from unittest import mock

import pytest
from django.db import transaction
from django.test import TestCase

from django_durable import Context, Execution, FatalError, Retry, current_step, step, workflow
from django_durable.clock import read_now
from django_durable.models import DispatchHint
from django_durable.testing import DurableKit, DurableTestMixin, advance, assert_steps, on_wait, run, stub_step
from testproject.shop.models import Order
from tests.driving import USING, connection

pytest_plugins = ["django_durable.testing.plugin"]

bodies: list[str] = []


@step(retry=Retry(max_attempts=3, initial=0.2))
def charge(order_id: int, amount: Decimal) -> dict[str, str]:
    raise AssertionError("the payment provider was really called")


@step(transactional=True)
def mark_paid(order_id: int, payment_id: str) -> None:
    Order.objects.filter(pk=order_id).update(status="paid", payment_id=payment_id)


@step
def ship(order_id: int) -> str:
    bodies.append(current_step().idempotency_key)
    return f"parcel-{order_id}"


@workflow
def sell(ctx: Context, order_id: int) -> dict[str, Any]:
    payment = ctx.step(charge, order_id, Decimal("12.50"))
    ctx.step(mark_paid, order_id, payment["id"])
    ctx.sleep(timedelta(days=2))
    review = ctx.wait_for_signal("reviewed", timeout=timedelta(days=7))
    ctx.sleep(timedelta(days=1))
    return {"parcel": ctx.step(ship, order_id), "review": review}


def sell_one(order: Order) -> Execution[Any]:
    with stub_step(charge, returns={"id": "pay-1"}) as stub:
        execution = run(sell, order.pk)
    assert stub.calls == [mock.call(order.pk, Decimal("12.50"))]
    return execution


class ThreeDaysWithFunctions(TestCase):
    def setUp(self) -> None:
        bodies.clear()

    def test_a_signal_in_the_middle_of_three_days(self) -> None:
        began, threads = time.monotonic(), threading.active_count()
        on_wait("reviewed", lambda execution: execution.signal("reviewed", {"stars": 5}))
        execution = sell_one(Order.objects.create())
        assert execution.result() == {"parcel": f"parcel-{execution.input['order_id']}", "review": {"stars": 5}}
        assert_steps(execution, ["charge", "mark_paid", "ship"])
        assert (execution.finished_at - execution.created_at) >= timedelta(days=3)
        assert Order.objects.get().status == "paid"
        assert bodies == [f"{execution.pk}:5"]
        assert time.monotonic() - began < 1
        assert threading.active_count() == threads

    def test_the_end_of_a_test_puts_the_clock_back(self) -> None:
        before = read_now(USING)
        advance(timedelta(days=400))
        assert read_now(USING) - before >= timedelta(days=400)
        self.doCleanups()
        assert read_now(USING) - before < timedelta(days=1)

    def test_other_tests_left_nothing(self) -> None:
        assert Execution.objects.count() == Order.objects.count() == DispatchHint.objects.count() == 0


class ThreeDaysWithTheMixin(DurableTestMixin, TestCase):
    @classmethod
    def setUpTestData(cls) -> None:
        cls.order = Order.objects.create()

    def test_the_test_sends_the_signal(self) -> None:
        self.stub_step(charge, returns={"id": "pay-1"})
        execution = self.run(sell, self.order.pk, key="order-1", tags={"shop": "north"})
        assert (execution.status, execution.key, execution.tags) == ("waiting", "order-1", {"shop": "north"})
        execution.signal("reviewed", None)
        assert self.run_until_idle() == 2
        execution.refresh_from_db()
        assert execution.result()["review"] is None
        self.assert_steps(execution, ["charge", mark_paid, f"{__name__}.ship"])

    def test_each_test_has_a_kit_of_its_own(self) -> None:
        with self.assertRaisesRegex(AssertionError, "really called"):
            charge(1, Decimal(1))
        assert self.run(sell, self.order.pk).error["message"] == "the payment provider was really called"


def test_the_fixture_does_the_same(durable: DurableKit) -> None:
    order = Order.objects.create()
    durable.stub_step(charge, returns={"id": "pay-1"})
    execution = durable.run(sell, order.pk)
    assert execution.status == "waiting"
    assert durable.run_until_idle(skip="all") == 1
    execution.refresh_from_db()
    assert (execution.status, execution.error["type"]) == ("failed", "django_durable.errors.SignalTimeout")
    assert connection.in_atomic_block


@pytest.mark.django_db(transaction=True)
def test_without_a_transaction_around_it_everything_is_committed(durable: DurableKit) -> None:
    order = Order.objects.create()
    durable.stub_step(charge, returns={"id": "pay-1"})
    assert durable.run(sell, order.pk).status == "waiting"
    assert not connection.in_atomic_block
    connection.close()
    assert Order.objects.get().status == "paid"


def test_an_open_block_of_the_test_can_be_rolled_back_with_all_that_ran_in_it(durable: DurableKit) -> None:
    order = Order.objects.create()
    durable.stub_step(charge, returns={"id": "pay-1"})
    with pytest.raises(ZeroDivisionError), transaction.atomic(using=USING):
        durable.run(sell, order.pk)
        order.refresh_from_db()
        assert order.status == "paid"
        raise ZeroDivisionError
    order.refresh_from_db()
    assert (order.status, Execution.objects.count()) == ("new", 0)


@step
def fails_for_good() -> None:
    raise FatalError("out of stock")


@workflow
def doomed_from_the_start(ctx: Context) -> None:
    ctx.step(fails_for_good)


def test_run_returns_a_failed_execution_and_raises_nothing(durable: DurableKit) -> None:
    execution = durable.run(doomed_from_the_start)
    assert (execution.status, execution.error["message"]) == ("failed", "out of stock")


@workflow
def takes_a_key(ctx: Context, key: str, other: int = 0) -> tuple[str, int]:
    return key, other


def test_a_name_that_is_both_parameter_and_option_is_refused(durable: DurableKit) -> None:
    with pytest.raises(TypeError, match=r"'key' is a parameter of workflow .* and an option of using\(\)"):
        durable.run(takes_a_key, key="x")
    assert durable.run(takes_a_key, "x", other=3, tenant=None).output == ("x", 3)
    with pytest.raises(TypeError, match=r"takes a workflow, not function"):
        durable.run(takes_a_key.func, "x")
