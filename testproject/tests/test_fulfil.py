"""Three days and a signal in milliseconds: plain ``TestCase``, nothing is committed, nobody is charged."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import call

from django.test import TestCase

from django_durable import Execution, FatalError, current_step
from django_durable.testing import DurableTestMixin
from testproject.shop.models import Order
from testproject.shop.workflows import announce_parcel, charge, fulfil, reserve_stock, send_receipt

HISTORY = Path(__file__).with_name("fulfil-1.json")


class FulfilTests(DurableTestMixin, TestCase):
    """An order on its way. The provider and the mail server are stubbed, our own database is the real one."""

    def setUp(self) -> None:
        self.order = Order.objects.create()
        self.order.lines.create(sku="lamp", unit_price=Decimal("12.50"))
        self.reserve = self.stub_step(reserve_stock, returns=Decimal("12.50"))
        self.charge = self.stub_step(charge, returns={"id": "pay-1", "amount": "12.50"})
        self.mails = [self.stub_step(send_receipt), self.stub_step(announce_parcel)]

    def fulfil(self, **using: Any) -> Execution[dict[str, object]]:
        """Run the order as far as it goes by itself."""
        execution: Execution[dict[str, object]] = self.run(fulfil, self.order.pk, **using)
        return execution

    def test_an_order_is_charged_reviewed_two_days_later_and_shipped(self) -> None:
        execution = self.fulfil(key=f"order-{self.order.pk}")
        self.assertEqual(execution.status, "waiting")
        self.assert_steps(execution, ["reserve_stock", "charge", "mark_paid", "send_receipt"])

        self.advance(timedelta(days=1))
        execution.signal("reviewed", "looks fine")
        self.run_until_idle()

        execution.refresh_from_db()
        self.assertEqual(
            execution.result(),
            {"payment": "pay-1", "review": "looks fine", "tracking_number": f"PARCEL-{self.order.pk:06d}"},
        )
        self.order.refresh_from_db()
        self.assertEqual((self.order.status, self.order.total), ("shipped", Decimal("12.50")))
        self.assertEqual(self.charge.calls, [call(self.order.pk, Decimal("12.50"))])
        self.assertEqual([len(mail.calls) for mail in self.mails], [1, 1])
        assert execution.finished_at is not None
        self.assertGreaterEqual(execution.finished_at - execution.created_at, timedelta(days=3))

    def test_a_provider_that_is_away_is_asked_again(self) -> None:
        failing = self.fail_step(charge, times=4, error=TimeoutError("no answer"))
        execution = self.fulfil()
        self.assertEqual((execution.status, len(failing.calls)), ("waiting", 5))
        self.assertEqual(len(self.charge.calls), 1)

    def test_a_refused_card_ends_the_order_unpaid(self) -> None:
        self.fail_step(charge, error=FatalError("card refused"))
        execution = self.fulfil()
        assert execution.error is not None
        self.assertEqual((execution.status, execution.error["message"]), ("failed", "card refused"))
        self.order.refresh_from_db()
        self.assertEqual(self.order.status, "new")

    def test_nobody_reviews_it(self) -> None:
        execution = self.fulfil()
        self.run_until_idle(skip="all")
        execution.refresh_from_db()
        assert execution.error is not None
        self.assertEqual(execution.error["type"], "django_durable.errors.SignalTimeout")

    def test_a_worker_that_dies_after_the_charge_charges_with_the_same_key(self) -> None:
        keys: list[str] = []

        def take(order_id: int, amount: Decimal) -> dict[str, str]:
            keys.append(current_step().idempotency_key)
            return {"id": "pay-1"}

        self.stub_step(charge, side_effect=take)
        crash = self.crash_turn(at_position=1)
        execution = self.fulfil()
        self.assertTrue(crash.happened)
        self.assertEqual((execution.recoveries, keys), (1, [f"{execution.pk}:1"] * 2))

    def test_runs_that_were_started_before_this_change_go_on(self) -> None:
        # A run of version 1 as it is in production, written by export_history(). Where this fails, today's code
        # would block such runs: give the workflow a new version and leave the old one where it is.
        self.assert_replays(fulfil, json.loads(HISTORY.read_text()))

    def test_other_tests_left_no_rows(self) -> None:
        self.assertEqual((Execution.objects.count(), Order.objects.count()), (0, 1))
