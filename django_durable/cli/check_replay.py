"""check-replay: whether the code here would go on with what is under way."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django_durable.authoring.recorded import export_history, read_history
from django_durable.authoring.registry import find_workflow
from django_durable.authoring.replay import find_departure
from django_durable.cli.exits import Exit, refusal
from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.verb import Verb
from django_durable.errors import UndecodableValue, UnknownWorkflow
from django_durable.models import Execution
from django_durable.planes.selection import plane_alias

__all__ = ["CheckReplay"]

BATCH = 200


class CheckReplay(Verb):
    """Reads histories and calls the bodies on them: no step runs, nothing is written. Exit code 5 with findings.

    To be run with the new code against the live database, or a copy of it, before that code is deployed.
    """

    name = "check-replay"
    summary = "Replay what is under way with the code here, without effects; exit code 5 where it would not go on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which executions, and with which code."""
        super().add_arguments(parser)
        parser.add_argument(
            "replayed_id", nargs="?", metavar="ID", help="this execution alone, also when it has ended"
        )
        parser.add_argument("--workflow", metavar="NAME", help="only executions of this workflow")
        parser.add_argument("--tenant", help="only executions of this tenant")
        parser.add_argument(
            "--workflow-version", metavar="V", help="replay with this version instead of each one's own"
        )

    def run(self, options: Options, output: Output) -> None:
        """Show each execution whose history and code part, and where they do."""
        checked, findings = 0, []
        for execution in chosen(options):
            checked += 1
            problem = find_problem(execution, options.text("workflow_version"))
            if problem is not None:
                findings.append(row_of(execution, problem))
        if output.as_json:
            output.document({"checked": checked, "findings": findings})
        elif findings:
            output.table(findings, ["id", "workflow", "version", "status", "problem"])
        if findings:
            raise refusal(f"{len(findings)} of {checked} executions would not go on with this code", Exit.FINDINGS)
        output.talk(f"{checked} executions replay with this code")


def chosen(options: Options) -> Iterator[Execution[Any]]:
    """The executions to look at: one by its id, or those that have not ended, oldest first."""
    one = options.text("replayed_id")
    if one is not None:
        yield Execution.objects.locate(one)
        return
    tenant = options.text("tenant")
    rows = Execution.objects.using(plane_alias(tenant or "")).active().order_by("pk")
    for name, wanted in (("tenant", tenant), ("workflow", options.text("workflow"))):
        rows = rows if wanted is None else rows.filter(**{name: wanted})
    batch = list(rows[:BATCH])
    while batch:
        yield from batch
        batch = list(rows.filter(pk__gt=batch[-1].pk)[:BATCH])


def find_problem(execution: Execution[Any], version: str | None) -> str | None:
    """Why the code here would not go on with this execution; ``None`` where it would."""
    try:
        workflow = find_workflow(execution.workflow, version or execution.version)
        return find_departure(workflow, read_history(export_history(execution)))
    except (UnknownWorkflow, UndecodableValue) as error:
        return error.message


def row_of(execution: Execution[Any], problem: str) -> dict[str, Any]:
    return {
        "id": execution.pk,
        "workflow": execution.workflow,
        "version": execution.version,
        "status": execution.status,
        "problem": problem,
    }
