"""stats: how much there is to do, and how long it has been waiting."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django_durable.cli.away import refuse_away
from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.verb import Verb
from django_durable.operators.stats import MOST_COUNTED, Measured, PlaneStats, measure

__all__ = ["ShowStats", "stats_document", "write_stats"]

OF_PLANES = ("ready", "oldest_ready_seconds", "running", "sleeping", "blocked", "parked", "open_dead_letters")
OF_QUEUES = ("paused", "concurrency", "held", "ready", "starts_left")


class ShowStats(Verb):
    """Cheap enough to be asked every few seconds."""

    name = "stats"
    summary = "Show how much work there is, how long it has been waiting, and what is stuck."

    def run(self, options: Options, output: Output) -> None:
        """Show the sums, and each plane's own numbers where there are planes."""
        measured = measure()
        if output.as_json:
            output.document(stats_document(measured))
        else:
            write_stats(measured, output)
        refuse_away(measured.away, output)


def stats_document(measured: Measured) -> dict[str, Any]:
    """The numbers as ``--json`` has them."""
    planes = {name: asdict(stats) for name, stats in measured.planes.items()}
    return {**asdict(measured.total), **({"planes": planes} if has_planes(measured) else {})}


def write_stats(measured: Measured, output: Output) -> None:
    """The numbers as text: ``+`` after one that was not counted to its end, ``?`` for one that is not known."""
    numbers = asdict(measured.total)
    statuses, queues, _at_least = (numbers.pop(name) for name in ("statuses", "queues", "at_least"))
    shown = {**{status: count for status, count in statuses.items() if count}, **numbers}
    output.pairs({name: capped(value) for name, value in shown.items()})
    if has_planes(measured):
        output.line()
        rows = [row_of(name, stats) for name, stats in measured.planes.items()]
        output.table(rows, ["plane", *OF_PLANES])
    if queues:
        output.line()
        of_queues = [
            {"queue": name, **{column: capped(one[column]) for column in OF_QUEUES}} for name, one in queues.items()
        ]
        output.table(of_queues, ["queue", *OF_QUEUES])


def row_of(name: str, stats: PlaneStats) -> dict[str, Any]:
    row: dict[str, Any] = {column: capped(getattr(stats, column)) for column in OF_PLANES}
    row |= {column: f"{getattr(stats, column)}+" for column in stats.at_least}
    if "ready" in stats.at_least:
        row["oldest_ready_seconds"] = "?"
    return {"plane": name, **row}


def has_planes(measured: Measured) -> bool:
    return len(measured.planes) + len(measured.away) > 1


def capped(value: float | int | None) -> str | float | int:
    if value is None:
        return "-"
    return f"{value}+" if isinstance(value, int) and value >= MOST_COUNTED else value
