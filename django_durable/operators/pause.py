"""pause: stop an execution at its next position."""

from __future__ import annotations

from typing import Any

from django_durable.authoring.place import refuse_in_body
from django_durable.engine.reach import reaching
from django_durable.engine.transitions import verbs
from django_durable.models import Execution
from django_durable.operators.actors import attribution
from django_durable.operators.reload import reload


def pause(execution: Execution[Any], *, actor: Any, reason: str) -> None:
    """Pause; a running turn first records the result in hand. Raises ``InvalidTransition``."""
    refuse_in_body("execution.pause()", "put it into a step, or use ctx.breakpoint()")
    with reaching(execution.using):
        verbs.pause(execution.using, execution.pk, attribution(actor, reason, required=True))
        reload(execution)
