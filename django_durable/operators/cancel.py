"""cancel: end an execution from outside."""

from __future__ import annotations

from typing import Any

from django_durable.authoring.one_database import check_transaction
from django_durable.authoring.place import refuse_in_body
from django_durable.engine.reach import reaching
from django_durable.engine.transitions import verbs
from django_durable.models import Execution
from django_durable.operators.actors import attribution
from django_durable.operators.reload import reload


def cancel(execution: Execution[Any], *, compensate: bool, actor: Any, reason: str) -> bool:
    """Cancel, whatever the status; whether this call won.

    At once where no undo step is registered, or without ``compensate``; otherwise after the undo steps, which begin
    when a running turn has stopped. Raises ``WrongDatabase`` where it would not be atomic with the transaction that
    is open.
    """
    refuse_in_body("execution.cancel()", "put it into a step")
    check_transaction(execution.using)
    with reaching(execution.using):
        by = attribution(actor, reason, required=False)
        won = verbs.cancel(execution.using, execution.pk, by, compensate=compensate)
        reload(execution)
    return won
