"""Tell the project's signal receivers, after the commit; costs nothing where there are none."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from django.db import transaction
from django.dispatch import Signal

from django_durable.models import Execution

logger = logging.getLogger("django_durable")


def tell(using: str, signal: Signal, execution_id: UUID, **more: Any) -> None:
    """Send a signal once the transaction that is open on ``using`` has committed. Never raises."""
    if signal.has_listeners(Execution):
        transaction.on_commit(lambda: _send(using, signal, execution_id, more), using=using, robust=True)


def _send(using: str, signal: Signal, execution_id: UUID, more: dict[str, Any]) -> None:
    execution = Execution._base_manager.using(using).filter(pk=execution_id).first()
    if execution is None:
        return
    for receiver, outcome in signal.send_robust(sender=Execution, execution=execution, **more):
        if isinstance(outcome, Exception):
            name = getattr(receiver, "__qualname__", type(receiver).__name__)
            logger.error("signal receiver %s failed with %s", name, type(outcome).__name__)
