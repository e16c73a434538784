"""current_run: verbs on a run that was continued act on the newest of its chain."""

from __future__ import annotations

from typing import Any

from django_durable.engine.chain import newest_run
from django_durable.engine.reach import reaching
from django_durable.errors import ExecutionNotFound
from django_durable.models import Execution


def current_run(execution: Execution[Any]) -> Execution[Any]:
    """This run, or the chain's current one where it has been continued.

    Raises ``PlaneUnavailable``, and ``ExecutionNotFound`` where that was deleted meanwhile.
    """
    while execution.status == "continued":
        with reaching(execution.using):
            newest = newest_run(execution.using, execution.chain_id)
            if newest == execution.pk:
                break
            found = Execution._base_manager.using(execution.using).filter(pk=newest).first()
        if found is None:
            raise ExecutionNotFound(f"there is no execution {newest}, the successor of {execution.pk}, any more")
        execution = found
    return execution
