"""Budget: what a run may spend, by name, counted exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, localcontext
from typing import Any

from django_durable.models.columns import check_name
from django_durable.payloads import decode, encode
from django_durable.showing import shown

__all__ = ["Budget", "budget_text", "check_amount", "check_budget"]

Amount = int | float | Decimal

DIGITS_BEFORE, DIGITS_AFTER = 60, 30
"""How large and how fine an amount may be: every sum of them is exact with ``PRECISION`` digits."""
PRECISION = 120


class Budget:
    """What is left of each name, as a turn or a reader counts it."""

    def __init__(self, stored: str) -> None:
        limits: dict[str, Amount] = decode(stored) if stored else {}
        self._limits = {name: check_amount(limit, name) for name, limit in limits.items()}
        self._spent = dict.fromkeys(self._limits, Decimal(0))

    def check_known(self, name: str) -> None:
        """Raise ``ValueError`` for a name that the run has no budget of."""
        if name not in self._limits:
            known = ", ".join(map(repr, self._limits)) or "none at all"
            raise ValueError(
                f"the run has no budget {name!r}; it has {known}. Declare it: @workflow(budget={{{name!r}: …}})"
            )

    def left(self, name: str) -> Decimal:
        """Limit less what was spent."""
        with localcontext(prec=PRECISION):
            return self._limits[name] - self._spent[name]

    def charge(self, name: str, amount: Amount) -> None:
        """Count one recorded charge."""
        with localcontext(prec=PRECISION):
            self._spent[name] += check_amount(amount, name)

    def remaining(self, charges: Iterable[tuple[str, Amount]]) -> dict[str, Decimal]:
        """What is left of each name after these charges."""
        for name, amount in charges:
            self.charge(name, amount)
        return {name: self.left(name) for name in self._limits}


def check_amount(amount: Any, name: str) -> Decimal:
    """A finite number, not negative, exactly. Raises ``TypeError``, ``ValueError``."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float, Decimal)):
        raise TypeError(f"an amount of {name!r} must be an int, float or Decimal, not {type(amount).__name__}")
    exact = Decimal(repr(amount)) if isinstance(amount, float) else Decimal(amount)
    if not exact.is_finite():
        raise ValueError(f"an amount of {name!r} must be finite, not {shown(amount)}")
    if exact < 0:
        raise ValueError(f"an amount of {name!r} must not be negative, but is {shown(amount)}")
    exponent = exact.as_tuple().exponent
    if exact.adjusted() >= DIGITS_BEFORE or (isinstance(exponent, int) and exponent < -DIGITS_AFTER):
        raise ValueError(
            f"an amount of {name!r} has at most {DIGITS_BEFORE} digits before the point and {DIGITS_AFTER} after it"
        )
    return exact


def check_budget(budget: Any) -> dict[str, Amount] | None:
    """Names to limits, each checked. Raises ``TypeError``, ``ValueError``."""
    if budget is None:
        return None
    if not isinstance(budget, Mapping):
        raise TypeError(f"budget must map names to numbers, like {{'tokens': 1000}}, not {type(budget).__name__}")
    for name, limit in budget.items():
        check_name(name, "budget name")
        check_amount(limit, name)
    return dict(budget)


def budget_text(budget: Mapping[str, Amount] | None) -> str:
    """The limits as they are stored with the execution; ``""`` for none."""
    return encode(dict(budget), where="budget") if budget else ""
