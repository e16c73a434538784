"""A return with all that it is composed of, in milliseconds: remote steps, a map, an approval, undo, a child."""

from __future__ import annotations

import json
import os
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

from django.contrib.auth.models import Permission, User
from django.core.exceptions import PermissionDenied
from django.test import TestCase

from django_durable import Execution, FatalError
from django_durable.testing import DurableTestMixin
from testproject.shop.mailbox import Mailbox
from testproject.shop.models import Order
from testproject.shop.provider import PaymentProvider
from testproject.shop.returns import inspect, restock, return_parcel, shelve

HISTORY = Path(__file__).with_name("return-parcel-1.json")


class ReturnTests(DurableTestMixin, TestCase):
    """The provider's and the mail server's files are temporary ones; our own database is the real one."""

    def setUp(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        files = {"PROVIDER_LEDGER": str(folder / "ledger"), "MAILBOX": str(folder / "mailbox")}
        self.enterContext(mock.patch.dict(os.environ, files))
        self.order = Order.objects.create(status=Order.Status.SHIPPED, tracking_number="PARCEL-1")
        for sku in ("lamp", "chair"):
            self.order.lines.create(sku=sku, unit_price=Decimal("12.50"))
        PaymentProvider().charge("the charge", self.order.pk, Decimal("25.00"))

    def return_it(self) -> Execution[dict[str, object]]:
        """Run the return as far as it goes without a decision."""
        execution: Execution[dict[str, object]] = self.run(return_parcel, self.order.pk)
        return execution

    def decided(self, execution: Execution[Any], *, approved: bool, reason: str = "") -> Execution[Any]:
        """The execution after a decision."""
        self.assertTrue(execution.decide("refund", approved=approved, actor="ada", reason=reason))
        self.run_until_idle()
        execution.refresh_from_db()
        return execution

    def subjects(self) -> list[str]:
        """What was written to others, in no order: what is mapped has none."""
        return sorted(message["subject"] for message in Mailbox().messages())

    def test_what_is_approved_is_refunded_once_and_restocked_by_a_child(self) -> None:
        execution = self.return_it()
        self.assertEqual(execution.status, "waiting")
        execution = self.decided(execution, approved=True)
        shelved = {"lamp": "aisle 4", "chair": "aisle 5"}
        self.assertEqual(execution.result(), {"refunded": 1, "shelved": shelved})
        self.assertEqual(PaymentProvider().ledger().balance(self.order.pk), 0)
        self.order.refresh_from_db()
        self.assertEqual(self.order.status, "cancelled")
        child = Execution.objects.get(parent_id=execution.pk)
        self.assertEqual((child.workflow, child.result()), (restock.name, shelved))
        self.assertEqual(self.subjects(), ["Fetch PARCEL-1", "Shelve chair", "Shelve lamp"])

    def test_what_is_refused_goes_back_to_the_customer(self) -> None:
        execution = self.decided(self.return_it(), approved=False, reason="it was worn")
        self.assertEqual(execution.result(), {"refunded": 0, "why": "it was worn"})
        self.assertEqual(self.subjects(), ["Fetch PARCEL-1", "Send back PARCEL-1"])
        self.assertEqual(PaymentProvider().ledger().balance(self.order.pk), Decimal("25.00"))

    def test_what_nobody_decides_goes_back_too(self) -> None:
        execution = self.return_it()
        self.run_until_idle(skip="all")
        execution.refresh_from_db()
        self.assertEqual(execution.result()["refunded"], 0)
        self.assertEqual(self.subjects(), ["Fetch PARCEL-1", "Send back PARCEL-1"])

    def test_a_cancel_sends_it_back(self) -> None:
        execution = self.return_it()
        self.assertTrue(execution.cancel(actor="ada", reason="the customer has changed their mind"))
        self.run_until_idle()
        execution.refresh_from_db()
        self.assertEqual(execution.status, "cancelled")
        self.assertEqual(self.subjects(), ["Fetch PARCEL-1", "Send back PARCEL-1"])

    def test_only_those_with_the_permission_decide(self) -> None:
        execution = self.return_it()
        clerk = User.objects.create_user("clerk")
        with self.assertRaises(PermissionDenied):
            execution.decide("refund", approved=True, actor=clerk)
        clerk.user_permissions.add(Permission.objects.get(codename="change_order"))
        self.assertTrue(execution.decide("refund", approved=True, actor=User.objects.get(pk=clerk.pk)))

    def test_an_article_that_cannot_be_inspected_ends_it_and_sends_the_parcel_back(self) -> None:
        self.fail_step(inspect, error=FatalError("there is a stone in the box"))
        execution = self.return_it()
        assert execution.error is not None
        self.assertEqual((execution.status, execution.error["message"]), ("failed", "there is a stone in the box"))
        self.assertEqual(self.subjects(), ["Fetch PARCEL-1", "Send back PARCEL-1"])

    def test_a_worker_that_dies_after_the_refund_refunds_once(self) -> None:
        execution = self.return_it()
        [refunded] = [entry["position"] + 1 for entry in execution.history() if entry["kind"] == "approval"]
        crash = self.crash_turn(at_position=refunded)
        execution = self.decided(execution, approved=True)
        self.assertTrue(crash.happened)
        self.assertEqual((execution.status, execution.recoveries), ("completed", 1))
        ledger = PaymentProvider().ledger()
        self.assertEqual((len(ledger.refunds), ledger.balance(self.order.pk)), (1, 0))

    def test_the_child_may_be_stubbed(self) -> None:
        shelves = self.stub_step(shelve)
        stub = self.stub_child(restock, returns={"lamp": "the attic"})
        execution = self.decided(self.return_it(), approved=True)
        self.assertEqual(execution.result()["shelved"], {"lamp": "the attic"})
        self.assertEqual((len(stub.calls), shelves.calls), (1, []))

    def test_runs_that_were_started_before_this_change_go_on(self) -> None:
        self.assert_replays(return_parcel, json.loads(HISTORY.read_text()))
