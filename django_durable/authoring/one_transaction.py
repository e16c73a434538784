"""in_one_transaction: several writes that a user's call stands for, all of them or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import transaction

from django_durable.authoring.one_database import check_transaction
from django_durable.engine.contention import repeated
from django_durable.engine.reach import reaching

T = TypeVar("T")


def in_one_transaction(alias: str, act: Callable[[], T]) -> T:
    """Run it on an execution's database, within the caller's transaction there, or again after contention.

    Raises ``WrongDatabase``, ``PlaneUnavailable``.
    """
    check_transaction(alias)

    def attempt() -> T:
        with transaction.atomic(using=alias):
            return act()

    with reaching(alias):
        return repeated(alias, attempt)
