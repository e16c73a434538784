"""retry: reopen what ended in failure, once."""

from __future__ import annotations

from typing import Any

from django_durable.authoring.place import refuse_in_body
from django_durable.engine.reach import reaching
from django_durable.engine.transitions import verbs
from django_durable.engine.transitions.reopen import reopen
from django_durable.models import Execution
from django_durable.operators.actors import attribution
from django_durable.operators.chain import current_run
from django_durable.operators.reload import reload


def retry(execution: Execution[Any], *, actor: Any, reason: str, generation: int | None = None) -> None:
    """Reopen a failed, timed out or dead execution; a blocked one is looked at again.

    ``generation``: only while that dead letter is the open one, for whoever acts on a letter and not on a run.
    Raises ``InvalidTransition`` (``actor``: who retried it before), ``ValueError`` for an empty actor.
    """
    refuse_in_body("execution.retry()", "put it into a step")
    by = attribution(actor, reason, required=True)
    with reaching(execution.using):
        current = current_run(reload(execution))
        if current.status == "blocked" and generation is None:
            verbs.resume(current.using, current.pk, by)
        else:
            reopen(current.using, current.pk, by, generation)
        reload(execution)
