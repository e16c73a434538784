"""Steps by themselves: a step is its function, and ``step_context`` is the attempt around it."""

from __future__ import annotations

import os
import tempfile
from decimal import Decimal
from pathlib import Path
from unittest import TestCase, mock

from django_durable.testing import step_context
from testproject.shop.provider import PaymentProvider
from testproject.shop.workflows import charge


class ChargeTests(TestCase):
    """The provider's file is a temporary one; our database is not needed."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        environment = mock.patch.dict(os.environ, PROVIDER_LEDGER=str(Path(folder.name) / "ledger.sqlite3"))
        self.enterContext(environment)

    def test_two_attempts_of_one_step_charge_once(self) -> None:
        with step_context() as first:
            payment = charge(7, Decimal("12.50"))
        with step_context(execution_id=first.execution_id, attempt=2):
            self.assertEqual(charge(7, Decimal("12.50")), payment)
        self.assertEqual(PaymentProvider().ledger().balance(7), Decimal("12.50"))
