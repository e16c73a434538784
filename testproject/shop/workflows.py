"""An order on its way from the payment to the parcel: what the demo runs, and what a reader may copy.

The body of ``fulfil`` runs again at every turn; a step's body never again once its result is recorded. Until
then it may: a killed process leaves nobody to say how far it came. So what leaves the database carries a key
that is the same at every attempt, and what stays in it is a transactional step.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from django.utils import timezone

from django_durable import Context, FatalError, Retry, current_step, step, workflow
from testproject.demo.body_log import recorded
from testproject.shop.mailbox import Mailbox
from testproject.shop.models import Order
from testproject.shop.provider import PaymentProvider
from testproject.shop.reports import report
from testproject.shop.returns import restock, return_parcel

__all__ = ["fulfil", "report", "restock", "return_parcel"]

WAREHOUSE = "warehouse@example.com"
# Somebody else's server may be away for a moment.
OUTSIDE = Retry(max_attempts=5, initial=0.2, factor=2.0, maximum=10.0, jitter=0.1)


@step(retry=OUTSIDE)
@recorded
def reserve_stock(order_id: int) -> Decimal:
    """Ask the warehouse, which takes its orders by e-mail, to set the articles aside; what they cost."""
    lines = list(Order.objects.get(pk=order_id).lines.order_by("pk"))
    articles = "\n".join(str(line) for line in lines)
    Mailbox().send(current_step().idempotency_key, WAREHOUSE, f"Reserve for order {order_id}", articles)
    return sum((line.quantity * line.unit_price for line in lines), Decimal("0.00"))


@step(retry=OUTSIDE)
@recorded
def charge(order_id: int, amount: Decimal) -> dict[str, str]:
    """Take the money, once: the provider knows the key again when this body has to run again."""
    return PaymentProvider().charge(current_step().idempotency_key, order_id, amount)


@step(transactional=True)
@recorded
def mark_paid(order_id: int, payment_id: str, amount: Decimal) -> None:
    """Commits with its checkpoint or not at all: an order that is paid already would show as a failure."""
    new = Order.objects.filter(pk=order_id, status=Order.Status.NEW)
    paid = {"status": Order.Status.PAID, "payment_id": payment_id, "total": amount, "paid_at": timezone.now()}
    if not new.update(**paid):
        raise FatalError(f"Order {order_id} is not new and cannot be marked as paid.")


@step(retry=OUTSIDE)
@recorded
def send_receipt(order_id: int) -> None:
    """Thank the customer."""
    order = Order.objects.get(pk=order_id)
    text = f"We have received {order.total} ({order.payment_id})."
    Mailbox().send(current_step().idempotency_key, order.customer_email, f"Receipt for order {order_id}", text)


@step(transactional=True)
@recorded
def ship(order_id: int) -> str:
    """Hand the parcel over; its tracking number."""
    tracking_number = f"PARCEL-{order_id:06d}"
    paid = Order.objects.filter(pk=order_id, status=Order.Status.PAID)
    shipped = {"status": Order.Status.SHIPPED, "tracking_number": tracking_number, "shipped_at": timezone.now()}
    if not paid.update(**shipped):
        raise FatalError(f"Order {order_id} is not paid and cannot be shipped.")
    return tracking_number


@step(retry=OUTSIDE)
@recorded
def announce_parcel(order_id: int, tracking_number: str) -> None:
    """Tell the customer where the parcel is."""
    order = Order.objects.get(pk=order_id)
    subject = f"Order {order_id} is on its way"
    Mailbox().send(current_step().idempotency_key, order.customer_email, subject, tracking_number)


@workflow(version="1")
def fulfil(
    ctx: Context,
    order_id: int,
    pause: timedelta = timedelta(days=2),
    patience: timedelta = timedelta(days=7),
) -> dict[str, object]:
    """Charge an order, keep it back for ``pause``, and ship it once somebody has reviewed it.

    Whoever reviews it sends the signal ``reviewed``; after ``patience`` without one the execution fails.
    """
    amount = ctx.step(reserve_stock, order_id)
    payment = ctx.step(charge, order_id, amount)
    ctx.step(mark_paid, order_id, payment["id"], amount)
    ctx.step(send_receipt, order_id)
    ctx.sleep(pause)
    review = ctx.wait_for_signal("reviewed", timeout=patience)
    tracking_number = ctx.step(ship, order_id)
    ctx.step(announce_parcel, order_id, tracking_number)
    return {"payment": payment["id"], "review": review, "tracking_number": tracking_number}
