"""doctor: what is wrong, and what to do about it."""

from __future__ import annotations

from django_durable.cli.exits import Exit, refusal
from django_durable.cli.options import Options
from django_durable.cli.output import Output, printable
from django_durable.cli.stats import stats_document, write_stats
from django_durable.cli.verb import Verb
from django_durable.operators.doctor import Finding, examine
from django_durable.operators.doctor.finding import INFO
from django_durable.operators.stats import measure
from django_durable.planes.registry import planes_in_use

__all__ = ["Doctor"]


class Doctor(Verb):
    """Exit code 5 with findings, 0 without, or with mere information: fit for a monitoring system."""

    name = "doctor"
    summary = "Tell what is stuck and what is only waiting; exit code 5 where something is wrong."

    def run(self, options: Options, output: Output) -> None:
        """Show every finding, then the numbers."""
        findings = examine()
        stats = measure()
        if output.as_json:
            output.document({"findings": [found.as_dict() for found in findings], "stats": stats_document(stats)})
        else:
            for found in findings:
                write_finding(found, output)
            write_stats(stats, output)
        wrong = [found for found in findings if found.severity != INFO]
        if wrong:
            codes = ", ".join(found.code for found in wrong)
            raise refusal(f"{len(wrong)} finding(s): {codes}", Exit.FINDINGS)
        output.talk("nothing is wrong" if findings else "no findings")


def write_finding(found: Finding, output: Output) -> None:
    """One finding for people."""
    where = f" on {printable(found.plane)}" if planes_in_use() else ""
    output.line(f"{found.severity.upper()} {found.code} ({found.count}){where}")
    output.line(f"  {printable(found.explanation)}")
    output.line(f"  {printable(found.advice)}")
    for execution_id in found.executions:
        output.line(f"    {execution_id}")
    output.line()
