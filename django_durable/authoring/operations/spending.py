"""Spending: charges against the run's budget."""

from __future__ import annotations

from decimal import Decimal

from django_durable.authoring.budget import Budget, check_amount
from django_durable.authoring.operations.base import Base, operation
from django_durable.engine.journal import Record
from django_durable.engine.session import Session
from django_durable.errors import BudgetExhausted
from django_durable.models.columns import check_name
from django_durable.payloads import apply_codecs, decode, decode_failure, encode_failure, encode_plain


class Spending(Base):
    """``ctx.spend``."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._budget = Budget(self._row["budget"] or "")

    @operation
    def spend(self, name: str, amount: int | float | Decimal) -> Decimal:
        """Charge the run's budget of this name; what is left of it.

        Raises ``BudgetExhausted`` before charging where less than that is left, now and at every replay;
        ``ValueError`` for a name that has no budget and for an amount that is negative or not finite.
        """
        check_name(name, "budget name")
        exact = check_amount(amount, name)
        self._budget.check_known(name)
        plain = encode_plain(amount, where=f"amount of {name!r}")
        position, record = self._session.enter("spend", name)
        if record is not None:
            return self._repeat(name, record)
        left = self._budget.left(name)
        if exact > left:
            error = BudgetExhausted(
                f"budget {name!r} has {left} left, which does not cover {amount}", position=position
            )
            self._session.keep_failed(position, "spend", name, encode_failure(error))
            raise error
        self._session.keep(position, "spend", name, apply_codecs(plain))
        self._budget.charge(name, amount)
        return self._budget.left(name)

    def _repeat(self, name: str, record: Record) -> Decimal:
        """As it is recorded: the charge, or the refusal."""
        if record.status == "failed":
            told = decode_failure(record.encoded_error or "")
            raise BudgetExhausted(told["message"], position=record.position)
        self._budget.charge(name, decode(record.encoded_output or "0"))
        return self._budget.left(name)
