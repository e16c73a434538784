"""signal: send a message to an execution."""

from __future__ import annotations

from typing import Any

from django_durable.authoring.one_database import check_transaction
from django_durable.authoring.place import refuse_in_body
from django_durable.engine.messages import send
from django_durable.engine.reach import reaching
from django_durable.models import Execution
from django_durable.models.columns import check_name
from django_durable.payloads import encode


def send_signal(execution: Execution[Any], name: str, payload: Any, *, dedup_key: str | None) -> int:
    """Store the signal in the caller's transaction; its id, the first one's for a repeated ``dedup_key``.

    Raises ``ExecutionClosed`` once the execution has ended.
    """
    refuse_in_body("execution.signal()", "put it into a step")
    check_name(name, "signal name")
    if dedup_key is not None:
        check_name(dedup_key, "dedup_key")
    encoded = encode(payload, where=f"payload of signal {name!r}")
    check_transaction(execution.using)
    with reaching(execution.using):
        return send(execution.using, execution.pk, f"signal:{name}", encoded, dedup_key)
