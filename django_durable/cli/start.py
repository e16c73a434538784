"""start: begin an execution by the workflow's name."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser
from typing import Any

from django_durable.authoring.arguments import bound_arguments
from django_durable.authoring.registry import all_workflows, find_workflow
from django_durable.authoring.workflow import Workflow
from django_durable.cli.exits import Exit, reading_arguments, refusal, usage
from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.verb import Verb
from django_durable.errors import UnknownWorkflow
from django_durable.payloads import coerce_arguments

__all__ = ["Start"]


class Start(Verb):
    """The newest version, unless one is named; JSON arguments become what the annotations say."""

    name = "start"
    summary = "Start an execution of a workflow by its name; prints its id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to start, and how."""
        parser.add_argument("workflow_name", metavar="NAME", help="the workflow's name, like shop.fulfil")
        super().add_arguments(parser)
        parser.add_argument("--input", metavar="JSON", help='its arguments by name: {"order_id": 5}')
        parser.add_argument("--key", help="one execution a key: a repeated start finds the first one")
        parser.add_argument("--tenant", help="the tenant it belongs to")
        parser.add_argument("--run-after", metavar="TIME", help="ISO 8601 with a time zone, or seconds from now")
        parser.add_argument("--workflow-version", metavar="VERSION", help="this version; by default the newest")
        parser.add_argument("--priority", metavar="N", help="from -2 to 2, higher first")
        parser.add_argument("--queue", help="the queue it waits in; by default the workflow's")

    def run(self, options: Options, output: Output) -> None:
        """Start it, or find the execution that has its key."""
        workflow = named_workflow(str(options.raw("workflow_name")), options.text("workflow_version"))
        plain = options.json("input", default={})
        if not isinstance(plain, dict) or not all(isinstance(name, str) for name in plain):
            raise usage('--input must be a JSON object of the arguments by name, like {"order_id": 5}')
        check_names(workflow, plain)
        with reading_arguments():
            prepared = workflow.using(**start_options(options))
            arguments = bound_arguments(workflow, coerce_arguments(workflow.func, plain))
        execution = prepared.start_bound(dict(arguments.arguments))
        if not execution.is_new:
            output.talk(f"execution {execution.pk} has this key already; it is {execution.status}")
        if output.as_json:
            output.document(
                {
                    "id": execution.pk,
                    "is_new": execution.is_new,
                    "workflow": execution.workflow,
                    "version": execution.version,
                    "key": execution.key,
                    "status": execution.status,
                }
            )
        else:
            output.line(str(execution.pk))


def check_names(workflow: Workflow[..., Any], plain: dict[str, Any]) -> None:
    """Refuse arguments that the workflow does not take, with the names of those that it does."""
    known = list(workflow.signature.parameters)
    unknown = sorted(set(plain) - set(known))
    if unknown:
        there_are = f"it takes {', '.join(known)}" if known else "it takes none"
        raise usage(f"workflow {workflow.name!r} has no parameter {', '.join(map(repr, unknown))}; {there_are}")


def start_options(options: Options) -> dict[str, Any]:
    chosen = {
        "key": options.text("key"),
        "tenant": options.text("tenant"),
        "run_after": options.moment("run_after"),
        "priority": options.number("priority"),
        "queue": options.text("queue"),
    }
    return {name: value for name, value in chosen.items() if value is not None}


def named_workflow(name: str, version: str | None) -> Workflow[..., Any]:
    """The workflow, or the refusal that names the nearest one there is."""
    try:
        return find_workflow(name, version)
    except UnknownWorkflow as error:
        near = difflib.get_close_matches(name, {workflow.name for workflow in all_workflows()} - {name}, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise refusal(f"{error}{hint}", Exit.NOT_FOUND) from error
