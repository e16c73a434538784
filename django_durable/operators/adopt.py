"""move_to_version and accept_code: let a live run go on with other code, where its history replays with it."""

from __future__ import annotations

from typing import Any

from django_durable.authoring.place import refuse_in_body
from django_durable.authoring.registry import find_workflow
from django_durable.authoring.workflow import Workflow
from django_durable.engine.footprint import Mark
from django_durable.engine.reach import reaching
from django_durable.engine.transitions.adopt import adopt
from django_durable.errors import InvalidTransition, UnknownWorkflow
from django_durable.models import Execution
from django_durable.operators.actors import attribution
from django_durable.operators.chain import current_run
from django_durable.operators.going_on import checked_on
from django_durable.operators.reload import reload


def move_to_version(execution: Execution[Any], version: str, *, actor: Any, reason: str) -> None:
    """Let a run that has not ended go on with another version of its workflow.

    Raises ``InvalidTransition`` where its history does not replay there (it names the position), while it runs, and
    after its end; ``UnknownWorkflow``.
    """
    refuse_in_body("execution.move_to_version()", "put it into a step")
    current = _current(execution)
    _adopt(current, find_workflow(current.workflow, version), "move", actor, reason)
    reload(execution)


def accept_code(execution: Execution[Any], *, actor: Any, reason: str) -> None:
    """Let a pinned run go on with the source that its version has now.

    Raises ``InvalidTransition`` where that is the source it has already, where its history does not replay with it,
    while it runs, and after its end; ``UnknownWorkflow``.
    """
    refuse_in_body("execution.accept_code()", "put it into a step")
    current = _current(execution)
    workflow = find_workflow(current.workflow, current.version)
    if current.source_digest == workflow.source_digest:
        raise InvalidTransition(
            f"execution {current.pk} has the source of workflow {workflow.name!r} version {workflow.version!r}"
            " already; there is nothing to accept"
        )
    _adopt(current, workflow, "accept_code", actor, reason)
    reload(execution)


def has_other_source(execution: Execution[Any]) -> bool | None:
    """Whether the source differs from the one that the run was started with; ``None``: the code is not here."""
    try:
        workflow = find_workflow(execution.workflow, execution.version)
    except UnknownWorkflow:
        return None
    return bool(workflow.source_digest != execution.source_digest)


def _current(execution: Execution[Any]) -> Execution[Any]:
    with reaching(execution.using):
        return current_run(reload(execution))


def _adopt(execution: Execution[Any], workflow: Workflow[..., Any], verb: str, actor: Any, reason: str) -> None:
    by = attribution(actor, reason, required=True)

    def act(seen: list[Mark]) -> None:
        adopt(
            execution.using,
            execution.pk,
            version=workflow.version,
            source_digest=workflow.source_digest,
            was=(execution.version, execution.source_digest),
            seen=seen,
            verb=verb,
            by=by,
        )

    with reaching(execution.using):
        checked_on(workflow, execution, act)
