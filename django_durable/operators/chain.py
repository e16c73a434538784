"""current_run: verbs on a run that was continued act on the newest of its chain."""

from __future__ import annotations

from typing import Any

from django_durable.engine.chain import newest_run
from django_durable.models import Execution


def current_run(execution: Execution[Any]) -> Execution[Any]:
    """This run, or the chain's current one where it has been continued."""
    while execution.status == "continued":
        newest = newest_run(execution.using, execution.chain_id)
        if newest == execution.pk:
            break
        execution = Execution._base_manager.using(execution.using).get(pk=newest)
    return execution
