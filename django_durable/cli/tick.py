"""tick: run the sweeps that are due, once."""

from __future__ import annotations

from argparse import ArgumentParser

from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.verb import Verb
from django_durable.runtime.tick import tick

__all__ = ["Tick"]


class Tick(Verb):
    """What beat or a worker does every TICK_SECONDS."""

    name = "tick"
    summary = "Run the sweeps that are due, once; any number of processes may."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which sweeps."""
        super().add_arguments(parser)
        parser.add_argument("--rebuild", action="store_true", help="rebuild missing dispatch hints now, all of them")

    def run(self, options: Options, output: Output) -> None:
        """Show what each sweep changed; the ones that were not due are not listed."""
        done = tick(rebuild=options.flag("rebuild"))
        if output.as_json:
            output.document(done)
        else:
            output.table([{"sweep": name, "changed": count} for name, count in done.items()], ["sweep", "changed"])
