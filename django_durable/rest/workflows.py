"""WorkflowViewSet: what may be started by REST."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from django_durable.authoring.registry import all_workflows, find_workflow
from django_durable.authoring.workflow import Workflow
from django_durable.conf import config
from django_durable.rest import representations
from django_durable.rest.schemas import documented, page_of
from django_durable.rest.view import DurableViewSet

__all__ = ["WorkflowViewSet"]


class WorkflowViewSet(DurableViewSet):
    """Every version; asks no database."""

    verbs: ClassVar[dict[str, str]] = {"list": "view"}

    @documented(
        "List the workflows that can be started here, with their parameters.",
        page_of(representations.Workflow, "WorkflowPage"),
    )
    def list(self, request: Request) -> Response:
        rows = [described(workflow) for workflow in all_workflows() if workflow.options.rest]
        return Response({"next": None, "unavailable": [], "results": rows})


def described(workflow: Workflow[..., Any]) -> dict[str, Any]:
    """A workflow as it goes out."""
    return {
        "name": workflow.name,
        "version": workflow.version,
        "newest": find_workflow(workflow.name).version == workflow.version,
        "queue": workflow.options.queue or config().default_queue,
        "priority": workflow.options.priority,
        "timeout": workflow.options.timeout,
        "parameters": [parameter(one) for one in workflow.signature.parameters.values()],
    }


def parameter(one: inspect.Parameter) -> dict[str, Any]:
    """A parameter; its annotation as it is written."""
    bare = one.annotation is one.empty
    variadic = one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    return {
        "name": one.name,
        "annotation": None if bare else inspect.formatannotation(one.annotation).strip("'"),
        "required": one.default is one.empty and not variadic,
    }
