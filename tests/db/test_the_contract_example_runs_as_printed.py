"""The workflow that the documentation opens with."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import transaction

from django_durable import Context, Execution, Retry, step, workflow
from testproject.shop.models import Order
from tests.driving import drain, make_due

pytestmark = pytest.mark.django_db

charged: list[tuple[int, Decimal]] = []
refunded: list[int] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    charged.clear()
    refunded.clear()


@step(retry=Retry(max_attempts=5, initial=1.0, factor=2.0, maximum=60.0, jitter=0.1))
def charge(order_id: int, amount: Decimal) -> dict[str, str]:
    charged.append((order_id, amount))
    return {"id": f"pay-{order_id}"}


@step
def refund(order_id: int) -> None:
    refunded.append(order_id)


@step(transactional=True)  # body and checkpoint commit in ONE transaction of the plane's database
def mark_paid(order_id: int, payment_id: str) -> None:
    Order.objects.filter(pk=order_id).update(payment_id=payment_id)


@workflow(version="1")
def fulfil(ctx: Context, order_id: int) -> dict[str, object]:
    with ctx.saga():  # undo, last first, when an exception leaves the block
        ctx.compensate(refund, order_id)  # registered before the step: its undo is idempotent
        payment = ctx.step(charge, order_id, Decimal("12.50"))
        ctx.step(mark_paid, order_id, payment["id"])
    ctx.sleep(timedelta(days=2))
    review = ctx.wait_for_signal("reviewed", timeout=timedelta(days=7))
    return {"payment": payment["id"], "review": review}


def test_it_runs() -> None:
    order = Order.objects.create()
    with transaction.atomic():
        execution = fulfil.using(key=f"order-{order.pk}", tenant="acme").start(order.pk)
    assert isinstance(execution, Execution)
    assert (execution.key, execution.tenant, execution.status) == (f"order-{order.pk}", "acme", "pending")

    drain()
    assert Execution.objects.locate(execution.pk).status == "waiting"
    make_due()
    drain()
    fulfil.signal(f"order-{order.pk}", "reviewed", {"stars": 5}, tenant="acme")
    drain()

    done = fulfil.get(f"order-{order.pk}", tenant="acme")
    assert done.result() == {"payment": f"pay-{order.pk}", "review": {"stars": 5}}
    order.refresh_from_db()
    assert order.payment_id == f"pay-{order.pk}"
    assert charged == [(order.pk, Decimal("12.50"))]
    assert refunded == []


def test_what_was_charged_is_refunded_where_the_order_cannot_be_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    order = Order.objects.create()

    def refuse(order_id: int, payment_id: str) -> None:
        raise ValueError("the order is locked")

    monkeypatch.setattr(mark_paid, "func", refuse)
    execution = fulfil.start(order.pk)
    drain()
    execution.refresh_from_db()
    assert execution.status == "failed"
    assert execution.error is not None and execution.error["message"] == "the order is locked"
    assert (charged, refunded) == ([(order.pk, Decimal("12.50"))], [order.pk])
