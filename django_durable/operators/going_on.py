"""checked_on: act on an execution once its history was found to replay with some code, and only while it is so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django_durable.authoring.recorded import export_history, read_history
from django_durable.authoring.replay import find_departure
from django_durable.authoring.workflow import Workflow
from django_durable.engine.footprint import HistoryMovedOn, Mark, footprint
from django_durable.engine.transitions.fork import check_prefix
from django_durable.errors import InvalidTransition
from django_durable.models import Execution

T = TypeVar("T")
TRIES = 5


def checked_on(
    workflow: Workflow[..., Any],
    execution: Execution[Any],
    act: Callable[[list[Mark]], T],
    before: int | None = None,
) -> T:
    """``act`` on the history that was replayed. No transaction is open while the body runs, so it may move on.

    ``before``: replay the first positions only, as another execution without key would. Raises ``InvalidTransition``
    naming where code and history part.
    """
    for _ in range(TRIES):
        seen = footprint(execution.using, execution.pk)
        if before is not None:
            check_prefix(execution.pk, seen, before)
        _check(workflow, execution, before)
        try:
            return act(seen)
        except HistoryMovedOn:
            continue
    raise InvalidTransition(f"execution {execution.pk} goes on while its history is being checked; pause it first")


def _check(workflow: Workflow[..., Any], execution: Execution[Any], before: int | None) -> None:
    start, *entries = export_history(execution)
    if before is not None:
        start |= {"key": None, "run": 1}
        entries = [entry for entry in entries if entry["position"] < before]
    problem = find_departure(workflow, read_history([start, *entries]))
    if problem is not None:
        raise InvalidTransition(
            f"the history of execution {execution.pk} does not replay with workflow {workflow.name!r} version"
            f" {workflow.version!r}: {problem}"
        )
