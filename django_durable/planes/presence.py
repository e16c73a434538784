"""presence: a row on its plane for each tenant, for starts and moves to wait for each other.

A move changes that row before it freezes what there is. A start locks it, shared: it comes before the move, which
then takes it along, or after, and is refused. A row that is missing could be locked by nobody.
"""

from __future__ import annotations

from django.db import connections, transaction

from django_durable.models import TenantEpoch
from django_durable.planes.registry import planes_in_use

_known: set[tuple[str, str]] = set()


def make_known(using: str, tenant: str) -> None:
    """Make sure of the tenant's row on this plane, in the transaction that is open there, once a process.

    SQLite needs none: all its writers wait for each other.
    """
    place = (using, tenant)
    if not tenant or place in _known or not planes_in_use() or connections[using].vendor != "postgresql":
        return
    TenantEpoch.objects.using(using).bulk_create([TenantEpoch(tenant=tenant)], ignore_conflicts=True)
    transaction.on_commit(lambda: _known.add(place), using=using, robust=True)


def forget_known() -> None:
    """Look again: the databases are other ones."""
    _known.clear()
