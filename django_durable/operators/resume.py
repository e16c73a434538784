"""resume: let a paused or blocked execution go on."""

from __future__ import annotations

from typing import Any

from django_durable.authoring.place import refuse_in_body
from django_durable.engine.reach import reaching
from django_durable.engine.transitions import verbs
from django_durable.models import Execution
from django_durable.operators.actors import attribution
from django_durable.operators.reload import reload


def resume(execution: Execution[Any], *, actor: Any, reason: str = "") -> None:
    """Resume, past a breakpoint if it stands at one. Raises ``InvalidTransition``."""
    refuse_in_body("execution.resume()", "put it into a step")
    with reaching(execution.using):
        verbs.resume(execution.using, execution.pk, attribution(actor, reason, required=False))
        reload(execution)
