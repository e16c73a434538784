"""check-replay: whether the code here would go on with what is under way."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django_durable.authoring.recorded import export_history, read_history
from django_durable.authoring.registry import find_workflow
from django_durable.authoring.replay import find_departure
from django_durable.cli.away import describe_away, refuse_away
from django_durable.cli.exits import Exit, refusal
from django_durable.cli.options import Options, add_payloads
from django_durable.cli.output import Output
from django_durable.cli.places import add_plane_filter, chosen_places
from django_durable.cli.verb import Verb
from django_durable.errors import UndecodableValue, UnknownWorkflow
from django_durable.models import Execution
from django_durable.planes.places import Away, Place, ask

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
        add_payloads(parser)
        add_plane_filter(parser)
        parser.add_argument("--tenant", help="only executions of this tenant")
        parser.add_argument(
            "--workflow-version", metavar="V", help="replay with this version instead of each one's own"
        )

    def run(self, options: Options, output: Output) -> None:
        """Show each execution whose history and code part, and where they do."""
        one = options.text("replayed_id")
        if one is not None:
            show([check([Execution.objects.locate(one)], options)], [], output)
            return
        answers = ask(chosen_places(options), lambda place: check(under_way(place, options), options))
        show([checked for _place, checked in answers.found], answers.away, output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """How many executions were looked at, and a row for each that would not go on."""

    count: int
    findings: list[dict[str, Any]]


def show(found: Sequence[Checked], away: Sequence[Away], output: Output) -> None:
    """Raises the refusal for findings, or else for planes that gave no answer."""
    checked = sum(one.count for one in found)
    findings = [row for one in found for row in one.findings]
    if output.as_json:
        output.document({"checked": checked, "findings": findings})
    elif findings:
        output.table(findings, ["id", "workflow", "version", "status", "problem"])
    if findings:
        if away:
            output.talk(describe_away(away))
        raise refusal(f"{len(findings)} of {checked} executions would not go on with this code", Exit.FINDINGS)
    output.talk(f"{checked} executions replay with this code")
    refuse_away(away, output)


def check(executions: Iterable[Execution[Any]], options: Options) -> Checked:
    """Look at these."""
    version, error_texts = options.text("workflow_version"), options.flag("payloads")
    count, findings = 0, []
    for execution in executions:
        count += 1
        problem = find_problem(execution, version, error_texts=error_texts)
        if problem is not None:
            findings.append(row_of(execution, problem))
    return Checked(count=count, findings=findings)


def under_way(place: Place, options: Options) -> Iterator[Execution[Any]]:
    """The executions of one plane that have not ended, oldest first."""
    rows = Execution.objects.using(place.alias).active().order_by("pk")
    for name in ("tenant", "workflow"):
        wanted = options.text(name)
        rows = rows if wanted is None else rows.filter(**{name: wanted})
    batch = list(rows[:BATCH])
    while batch:
        yield from batch
        batch = list(rows.filter(pk__gt=batch[-1].pk)[:BATCH])


def find_problem(execution: Execution[Any], version: str | None, *, error_texts: bool) -> str | None:
    """Why the code here would not go on with this execution; ``None`` where it would."""
    try:
        workflow = find_workflow(execution.workflow, version or execution.version)
        return find_departure(workflow, read_history(export_history(execution)), error_texts=error_texts)
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
