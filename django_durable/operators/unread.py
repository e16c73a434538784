"""unread: what was sent to an execution and no wait has taken."""

from __future__ import annotations

from typing import Any

from django_durable.models import Execution, Message

MOST = 100


def unread_messages(execution: Execution[Any], *, most: int = MOST) -> list[dict[str, Any]]:
    """What was accepted and no wait has taken, the oldest first: after the end nobody will.

    Dictionaries with ``id``, ``channel`` (kind and name) and ``accepted_at``; no payloads.
    """
    rows = Message.objects.using(execution.using).filter(execution_id=execution.pk, consumed_by=None)
    return [dict(row) for row in rows.order_by("id").values("id", "channel", "accepted_at")[:most]]
