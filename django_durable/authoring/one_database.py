"""Work belongs into the caller's transaction, so that transaction must be on the execution's own database."""

from __future__ import annotations

import warnings

from django.db import connections

from django_durable.conf import config
from django_durable.errors import WrongDatabase


def check_transaction(alias: str) -> None:
    """Refuse work that would not be atomic with the transaction that the caller has open elsewhere."""
    policy = config().cross_database_start
    if policy == "allow" or connections[alias].in_atomic_block:
        return
    others = [c.alias for c in connections.all(initialized_only=True) if c.alias != alias and c.in_atomic_block]
    if not others:
        return
    message = (
        f"a transaction is open on {', '.join(sorted(others))}, but this execution lives on {alias!r} and would be"
        f" accepted even if yours is rolled back; open transaction.atomic(using={alias!r})"
    )
    if policy == "refuse":
        raise WrongDatabase(message)
    warnings.warn(message, RuntimeWarning, stacklevel=3)
