"""begin: start what REST may start, by the workflow's name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django_durable.authoring.arguments import bound_arguments
from django_durable.authoring.registry import find_workflow
from django_durable.authoring.workflow import Workflow
from django_durable.errors import DurableError, ExecutionConflict, UnknownWorkflow
from django_durable.models import Execution
from django_durable.payloads import UnfitArgument, coerce_arguments
from django_durable.rest.idempotency import REUSED
from django_durable.rest.problem import BadInput, ReusedKey

__all__ = ["begin"]

OPTIONS = ("run_after", "priority", "tags", "correlation_id")


def begin(body: Mapping[str, Any], *, tenant: str | None, header_key: str | None) -> Execution[Any]:
    """Start it, or find the execution that has its key.

    Raises ``UnknownWorkflow``, also for one that REST may not start; ``BadInput``; ``ExecutionConflict``, or
    ``ReusedKey`` where the key is the header's.
    """
    workflow = _allowed(body["workflow"], body.get("version"))
    key = body.get("key") or header_key
    by_header = not body.get("key") and header_key is not None
    options = {name: body[name] for name in OPTIONS if body.get(name) is not None}
    if tenant:
        options["tenant"] = tenant
    if key is not None:
        options["key"] = key
    try:
        prepared = workflow.using(**options)
    except (TypeError, ValueError) as error:
        raise BadInput({"detail": [str(error)]}) from error
    arguments = _arguments(workflow, body["input"])
    try:
        execution = prepared.start_bound(arguments)
    except ExecutionConflict as error:
        if by_header:
            raise ReusedKey(REUSED) from error
        raise
    if by_header and not execution.is_new:
        _refuse_other_options(execution, options)
    return execution


def _allowed(name: str, version: str | None) -> Workflow[..., Any]:
    """One that says ``rest=True``. Whether there is another of the name must not show."""
    try:
        workflow = find_workflow(name, version)
    except UnknownWorkflow:
        workflow = None
    if workflow is None or not workflow.options.rest:
        wanted = f"{name!r}" if version is None else f"{name!r} version {version!r}"
        raise UnknownWorkflow(f"there is no workflow {wanted} that can be started here")
    return workflow


def _arguments(workflow: Workflow[..., Any], plain: dict[str, Any]) -> dict[str, Any]:
    known = list(workflow.signature.parameters)
    unknown = sorted(set(plain) - set(known))
    if unknown:
        there_are = f"it takes {', '.join(known)}" if known else "it takes none"
        raise BadInput({"input": {name: [f"There is no such parameter; {there_are}."] for name in unknown}})
    try:
        return dict(bound_arguments(workflow, coerce_arguments(workflow.func, plain)).arguments)
    except UnfitArgument as error:
        at = "" if error.path == "$" else f"at {error.path}: "
        raise BadInput({"input": {error.parameter: [at + error.reason]}}) from error
    except DurableError:
        raise
    except (TypeError, ValueError) as error:
        raise BadInput({"input": [str(error)]}) from error


def _refuse_other_options(execution: Execution[Any], options: Mapping[str, Any]) -> None:
    """What the first start said and no run changes: tags may have been changed by now."""
    wanted = {"priority": options.get("priority"), "correlation_id": options.get("correlation_id")}
    if isinstance(options.get("run_after"), datetime):
        wanted["run_after"] = options["run_after"]
    if any(value is not None and getattr(execution, name) != value for name, value in wanted.items()):
        raise ReusedKey(REUSED)
