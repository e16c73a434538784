"""stats: how much there is to do, and how long it has been waiting."""

from __future__ import annotations

from dataclasses import asdict

from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.verb import Verb
from django_durable.operators.stats import MOST_COUNTED, Stats, measure
from django_durable.planes.selection import spine_alias

__all__ = ["ShowStats", "write_stats"]


class ShowStats(Verb):
    """Cheap enough to be asked every few seconds."""

    name = "stats"
    summary = "Show how much work there is, how long it has been waiting, and what is stuck."

    def run(self, options: Options, output: Output) -> None:
        """Show the numbers."""
        stats = measure(spine_alias())
        if output.as_json:
            output.document(asdict(stats))
        else:
            write_stats(stats, output)


def write_stats(stats: Stats, output: Output) -> None:
    """The numbers as text; a number that was not counted to its end has a plus sign."""
    numbers = asdict(stats)
    statuses = numbers.pop("statuses")
    shown = {**{status: count for status, count in statuses.items() if count}, **numbers}
    output.pairs({name: capped(value) for name, value in shown.items()})


def capped(value: float | int | None) -> str | float | int:
    if value is None:
        return "-"
    return f"{value}+" if isinstance(value, int) and value >= MOST_COUNTED else value
