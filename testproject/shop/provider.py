"""A payment provider like the real ones: a charge has an idempotency key, one key never charges twice.

``calls`` has every request, repeats included; ``charges`` has what was really taken. A workflow engine that
repeats a step shows in the first table and must not show in the second.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from testproject.shop.outside import OutsideSystem

__all__ = ["Ledger", "PaymentProvider"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What the provider has recorded, each list oldest first."""

    charges: list[dict[str, Any]]
    refunds: list[dict[str, Any]]
    calls: list[dict[str, Any]]

    def balance(self, order_id: int) -> Decimal:
        """What the customer has paid for this order and not got back."""
        taken = sum((Decimal(row["amount"]) for row in self.charges if row["order_id"] == order_id), Decimal())
        returned = sum((Decimal(row["amount"]) for row in self.refunds if row["order_id"] == order_id), Decimal())
        return taken - returned


class PaymentProvider(OutsideSystem):
    """The provider's API. The ledger is the file ``PROVIDER_LEDGER``."""

    variable = "PROVIDER_LEDGER"
    schema = """
        CREATE TABLE charges (
            payment_id TEXT PRIMARY KEY, idempotency_key TEXT NOT NULL UNIQUE, order_id INTEGER NOT NULL,
            amount TEXT NOT NULL, at REAL NOT NULL);
        CREATE TABLE refunds (
            payment_id TEXT PRIMARY KEY REFERENCES charges, idempotency_key TEXT NOT NULL,
            order_id INTEGER NOT NULL, amount TEXT NOT NULL, at REAL NOT NULL);
        CREATE TABLE calls (
            method TEXT NOT NULL, idempotency_key TEXT NOT NULL, order_id INTEGER NOT NULL, amount TEXT,
            at REAL NOT NULL);
    """

    def charge(self, idempotency_key: str, order_id: int, amount: Decimal) -> dict[str, str]:
        """Take the money once for this key; a repeat returns the first payment.

        ``ValueError`` where the key was used for another order or amount, as the real providers do.
        """
        with self.connected() as connection:
            connection.execute(
                "INSERT INTO calls VALUES ('charge', ?, ?, ?, ?)",
                (idempotency_key, order_id, str(amount), time.time()),
            )
            connection.execute(
                "INSERT INTO charges VALUES (?, ?, ?, ?, ?) ON CONFLICT (idempotency_key) DO NOTHING",
                (f"pay-{idempotency_key}", idempotency_key, order_id, str(amount), time.time()),
            )
            row = connection.execute(
                "SELECT payment_id, order_id, amount FROM charges WHERE idempotency_key = ?",
                (idempotency_key,),
            ).fetchone()
        if (row["order_id"], Decimal(row["amount"])) != (order_id, amount):
            raise ValueError(f"The idempotency key {idempotency_key!r} was used for another charge; use a new key.")
        return {"id": row["payment_id"], "amount": row["amount"]}

    def refund(self, idempotency_key: str, order_id: int) -> int:
        """Give back everything taken for this order and not yet returned; the number of payments returned.

        A charge is refunded at most once, whatever the keys; an order without one gives 0.
        """
        with self.connected() as connection:
            connection.execute(
                "INSERT INTO calls VALUES ('refund', ?, ?, NULL, ?)", (idempotency_key, order_id, time.time())
            )
            return connection.execute(
                "INSERT INTO refunds SELECT payment_id, ?, order_id, amount, ? FROM charges "
                "WHERE order_id = ? ON CONFLICT (payment_id) DO NOTHING",
                (idempotency_key, time.time(), order_id),
            ).rowcount

    def ledger(self) -> Ledger:
        """Everything so far."""
        return Ledger(charges=self.rows("charges"), refunds=self.rows("refunds"), calls=self.rows("calls"))
