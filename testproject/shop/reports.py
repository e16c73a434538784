"""The nightly report: what was shipped on the day before, by e-mail to the owner."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings

from django_durable import Context, Retry, current_step, step, workflow
from testproject.shop.mailbox import Mailbox
from testproject.shop.models import Order

__all__ = ["report"]

OWNER = "owner@example.com"
SHOP = ZoneInfo("Europe/Berlin")


@step
def count_shipped(since: datetime, until: datetime) -> int:
    """How many parcels were handed over."""
    return Order.objects.filter(shipped_at__gte=since, shipped_at__lt=until).count()


@step(retry=Retry(max_attempts=5, initial=0.2, factor=2.0, maximum=10.0, jitter=0.1))
def send_report(day: str, shipped: int) -> None:
    """The mailbox knows the key again: a body that runs twice sends once."""
    Mailbox().send(current_step().idempotency_key, OWNER, f"Shipped on {day}", f"{shipped} parcel(s)")


@workflow(version="1")
def report(ctx: Context) -> int:
    """About the day before the night for which it is scheduled, however late it is started."""
    night = (ctx.scheduled_for or ctx.now()).astimezone(SHOP)
    until = night.replace(hour=0, minute=0, second=0, microsecond=0)
    since = (until - timedelta(hours=12)).replace(hour=0)
    shipped = ctx.step(count_shipped, since, until)
    ctx.step(send_report, since.date().isoformat(), shipped)
    return shipped


# With data planes all work belongs to tenants, and each of them would have a report of its own.
if not settings.DURABLE.get("PLANES"):
    report.schedule("nightly report", cron="30 2 * * *", timezone="Europe/Berlin")
