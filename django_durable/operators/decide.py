"""decide: answer an approval that an execution waits for."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied

from django_durable.authoring.one_database import check_transaction
from django_durable.authoring.place import refuse_in_body
from django_durable.engine.reach import reaching
from django_durable.engine.transitions import decide as transition
from django_durable.engine.transitions.decide import Decision
from django_durable.models import ApprovalRequest, Execution
from django_durable.models.columns import check_name
from django_durable.operators.actors import attribution
from django_durable.operators.reload import reload
from django_durable.payloads import encode


def decide(
    execution: Execution[Any], name: str, *, approved: bool, actor: Any, reason: str = "", data: Any = None
) -> bool:
    """Approve or reject, in the caller's transaction; ``False`` where it is decided already, or its time is over.

    Raises ``InvalidTransition`` where no approval of this name was requested, ``ExecutionClosed`` after the end,
    ``ValueError`` for an empty actor, ``PermissionDenied`` for a user without the permission that the request names.
    """
    refuse_in_body("execution.decide()", "put it into a step")
    check_name(name, "approval name")
    if not isinstance(approved, bool):
        raise TypeError(f"approved must be True or False, not {type(approved).__name__}")
    by = attribution(actor, reason, required=True)
    encode(data, where=f"data of the decision of approval {name!r}")

    def check(asked: ApprovalRequest) -> None:
        may = getattr(actor, "has_perm", None)
        if asked.permission and callable(may) and not may(asked.permission):
            raise PermissionDenied(f"{by.actor} may not decide approval {name!r}: it takes {asked.permission}")

    check_transaction(execution.using)
    with reaching(execution.using):
        decision = Decision(approved=approved, by=by, data=data)
        won = transition.decide(execution.using, execution.pk, name, decision, check)
        reload(execution)
    return won
