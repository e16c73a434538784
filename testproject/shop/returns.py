"""A parcel that comes back: what ``fulfil`` has no use for, in one workflow that a reader may copy.

Its articles are looked at by workers that serve the queue ``warehouse`` (a step elsewhere, mapped over the lines), a
person decides on the refund, the parcel goes back to the customer where that is refused or nobody decides (undo), and
what was accepted is put back on the shelves by a child.
"""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from django_durable import ApprovalTimeout, Context, FatalError, Retry, current_step, step, workflow
from testproject.shop.mailbox import Mailbox
from testproject.shop.models import Order, OrderLine
from testproject.shop.provider import PaymentProvider

COURIER = "courier@example.com"
SHELVES = "shelves@example.com"
OUTSIDE = Retry(max_attempts=5, initial=0.2, factor=2.0, maximum=10.0, jitter=0.1)


class ReturnRefused(Exception):
    """Whoever decides has decided against the refund."""


@step(retry=OUTSIDE)
def fetch_parcel(order_id: int) -> list[int]:
    """Have the courier fetch it from the customer; its lines, by id."""
    order = Order.objects.get(pk=order_id)
    if order.status != Order.Status.SHIPPED:
        raise FatalError(f"Order {order_id} is {order.status}: only what was shipped can come back.")
    Mailbox().send(current_step().idempotency_key, COURIER, f"Fetch {order.tracking_number}", order.customer_email)
    return list(order.lines.order_by("pk").values_list("pk", flat=True))


@step(retry=OUTSIDE)
def send_parcel_back(order_id: int) -> None:
    """Undo of ``fetch_parcel``: to the customer with it, if it was fetched at all."""
    order = Order.objects.get(pk=order_id)
    Mailbox().send(
        current_step().idempotency_key, COURIER, f"Send back {order.tracking_number}", order.customer_email
    )


@step(queue="warehouse", retry=OUTSIDE, timeout=60, queue_timeout=timedelta(days=2))
def inspect(line_id: int) -> str:
    """Look at one article; its number. Runs where the articles are: only workers of that queue take it."""
    return OrderLine.objects.get(pk=line_id).sku


@step(retry=OUTSIDE)
def refund(order_id: int) -> int:
    """Give the money back: a charge is refunded once, however often this runs. How many payments were returned."""
    return PaymentProvider().refund(current_step().idempotency_key, order_id)


@step(transactional=True)
def mark_returned(order_id: int) -> None:
    """Commits with its checkpoint or not at all."""
    shipped = Order.objects.filter(pk=order_id, status=Order.Status.SHIPPED)
    if not shipped.update(status=Order.Status.CANCELLED, cancelled_at=timezone.now()):
        raise FatalError(f"Order {order_id} is not shipped and cannot be returned.")


@step(retry=OUTSIDE)
def shelve(sku: str) -> str:
    """Have an article put back where it belongs; the place."""
    place = f"aisle {len(sku)}"
    Mailbox().send(current_step().idempotency_key, SHELVES, f"Shelve {sku}", place)
    return place


@workflow
def restock(ctx: Context, skus: list[str]) -> dict[str, str]:
    """Put articles back on the shelves, five at a time; where each of them is."""
    return dict(zip(skus, ctx.map(shelve, skus, concurrency=5), strict=True))


@workflow
def return_parcel(ctx: Context, order_id: int, patience: timedelta = timedelta(days=7)) -> dict[str, object]:
    """Take a shipped order back and refund it, if a person with the permission approves within ``patience``."""
    try:
        with ctx.saga():
            ctx.compensate(send_parcel_back, order_id)
            lines = ctx.step(fetch_parcel, order_id)
            skus = ctx.map(inspect, lines, concurrency=5)
            decision = ctx.wait_for_approval(
                "refund",
                prompt=f"Refund order {order_id}?",
                data={"articles": skus},
                permission="shop.change_order",
                timeout=patience,
            )
            if not decision.approved:
                raise ReturnRefused(decision.reason)
    except (ApprovalTimeout, ReturnRefused) as error:
        return {"refunded": 0, "why": str(error)}
    refunded = ctx.step(refund, order_id)
    ctx.step(mark_returned, order_id)
    return {"refunded": refunded, "shelved": ctx.child(restock, skus)}
