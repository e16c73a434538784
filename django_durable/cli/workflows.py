"""workflows: what this project's code declares."""

from __future__ import annotations

from typing import Any

from django_durable.authoring.registry import all_workflows, find_workflow
from django_durable.authoring.workflow import Workflow
from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.verb import Verb
from django_durable.conf import config

__all__ = ["ListWorkflows"]


class ListWorkflows(Verb):
    """Asks no database."""

    name = "workflows"
    summary = "List the workflows of this code, every version."

    def run(self, options: Options, output: Output) -> None:
        """By name, the versions in order; a start by name takes the newest."""
        rows = [describe(workflow) for workflow in all_workflows()]
        if output.as_json:
            output.document(rows)
        else:
            shown = [{**row, "parameters": ", ".join(row["parameters"])} for row in rows]
            output.table(shown, ["name", "version", "newest", "queue", "priority", "timeout", "parameters"])


def describe(workflow: Workflow[..., Any]) -> dict[str, Any]:
    return {
        "name": workflow.name,
        "version": workflow.version,
        "newest": find_workflow(workflow.name).version == workflow.version,
        "queue": workflow.options.queue or config().default_queue,
        "priority": workflow.options.priority,
        "timeout": workflow.options.timeout,
        "max_recoveries": workflow.options.max_recoveries,
        "pin": workflow.options.pin,
        "rest": workflow.options.rest,
        "parameters": list(workflow.signature.parameters),
    }
