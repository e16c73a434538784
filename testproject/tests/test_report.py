"""The nightly report is about the day before its night, and is sent once."""

from __future__ import annotations

from datetime import timedelta

from django.test import TestCase
from django.utils import timezone

from django_durable import Execution
from django_durable.testing import DurableTestMixin
from testproject.shop.models import Order
from testproject.shop.reports import SHOP, send_report


class NightlyReportTests(DurableTestMixin, TestCase):
    """The mail server is stubbed."""

    def test_the_nightly_report_is_about_the_day_before(self) -> None:
        sent = self.stub_step(send_report)
        today = timezone.now().astimezone(SHOP).replace(hour=12)
        Order.objects.create(shipped_at=today)
        Order.objects.create(shipped_at=today - timedelta(days=3))

        self.advance(timedelta(days=1))
        self.run_until_idle(skip=None)

        execution = Execution.objects.get(workflow="shop.report")
        assert execution.scheduled_for is not None
        night = execution.scheduled_for.astimezone(SHOP)
        self.assertIn((night.hour, night.minute), ((2, 30), (3, 0)))
        self.assertEqual(execution.output, 1 if night.date() > today.date() else 0)
        day = (night.date() - timedelta(days=1)).isoformat()
        self.assertEqual([one.args for one in sent.calls], [(day, execution.output)])
