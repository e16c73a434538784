"""bound_arguments: a stored input on the signature that the workflow has today."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_durable.authoring.workflow import Workflow

__all__ = ["bound_arguments"]


def bound_arguments(workflow: Workflow[..., Any], stored: dict[str, Any]) -> inspect.BoundArguments:
    """The arguments to call the body with. Raises ``TypeError`` where the stored input does not fit."""
    if not isinstance(stored, dict):
        raise TypeError(f"the stored input of workflow {workflow.name!r} is a {type(stored).__name__}, not arguments")
    bound = inspect.BoundArguments(workflow.signature, stored)
    unknown = set(stored) - set(workflow.signature.parameters)
    if unknown:
        raise TypeError(f"workflow {workflow.name!r} no longer has the parameter {', '.join(sorted(unknown))}")
    workflow.signature.bind(*bound.args, **bound.kwargs)
    return bound
