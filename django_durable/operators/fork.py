"""fork: try the rest of a run again, in an execution of its own."""

from __future__ import annotations

from typing import Any

from django_durable.authoring.one_database import check_transaction
from django_durable.authoring.place import refuse_in_body
from django_durable.authoring.registry import find_workflow
from django_durable.authoring.workflow import Workflow
from django_durable.engine.footprint import Mark, footprint
from django_durable.engine.reach import reaching
from django_durable.engine.transitions import fork as engine
from django_durable.errors import UnknownWorkflow
from django_durable.models import Execution
from django_durable.operators.actors import attribution
from django_durable.operators.going_on import checked_on


def fork(
    execution: Execution[Any], *, from_position: int, actor: Any, reason: str, version: str | None
) -> Execution[Any]:
    """Start an execution with a copy of the history before ``from_position``; it goes on from there by itself.

    Of the run in hand, also where that was continued. Raises ``InvalidTransition`` naming the position where an
    operation before the cut is not settled, or where the history does not replay with ``version``;
    ``UnknownWorkflow``, ``ValueError`` for an empty actor or a position that is none.
    """
    refuse_in_body("execution.fork()", "put it into a step")
    if isinstance(from_position, bool) or not isinstance(from_position, int):
        raise TypeError(f"from_position must be an int, not {type(from_position).__name__}")
    if from_position < 0:
        raise ValueError(f"from_position must not be negative, but is {from_position}")
    by = attribution(actor, reason, required=True)
    check_transaction(execution.using)
    with reaching(execution.using):
        workflow = _code_of(execution, version)

        def attempt(seen: list[Mark] | None) -> Any:
            cut = engine.Cut(
                position=from_position,
                version=version or execution.version,
                source_digest=execution.source_digest if workflow is None else workflow.source_digest,
                seen=seen,
            )
            return engine.fork(execution.using, execution.pk, cut, by)

        if version is None or workflow is None:
            fork_id = attempt(None)
        else:
            fork_id = checked_on(workflow, execution, attempt, from_position)
        return Execution._base_manager.using(execution.using).get(pk=fork_id)


def effects_after(execution: Execution[Any], position: int) -> list[Mark]:
    """The steps that the execution has completed at or after a position: what a fork from there may do again."""
    return engine.effects_after(footprint(execution.using, execution.pk), position)


def _code_of(execution: Execution[Any], version: str | None) -> Workflow[..., Any] | None:
    try:
        return find_workflow(execution.workflow, version or execution.version)
    except UnknownWorkflow:
        if version is not None:
            raise
        return None  # it is blocked until the code is there, like any other
