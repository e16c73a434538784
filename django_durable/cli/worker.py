"""worker: the embedded one."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from functools import partial

from django_durable.cli.exits import Exit, refusal
from django_durable.cli.options import Options
from django_durable.cli.outage import lacking
from django_durable.cli.output import Output
from django_durable.cli.places import named_place
from django_durable.cli.schema import missing_tables
from django_durable.cli.stopping import asked_to_stop
from django_durable.cli.verb import Verb
from django_durable.ids import process_identity
from django_durable.planes.places import Place
from django_durable.planes.selection import spine_alias
from django_durable.runtime.worker import Worker, exit_at_once

__all__ = ["RunWorker"]


class RunWorker(Verb):
    """Claims and runs executions; needs nothing but the database."""

    name = "worker"
    summary = "Run executions until told to stop (SIGTERM, SIGINT; a second one exits at once)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What it serves, and when it ends."""
        parser.add_argument("--concurrency", metavar="N", help="executions at a time (WORKER_CONCURRENCY)")
        parser.add_argument("--queues", metavar="A,B", help="serve these queues only; by default all of them")
        parser.add_argument("--plane", metavar="NAME", help="serve this plane only")
        parser.add_argument("--until-idle", action="store_true", help="end when nothing is due now")
        parser.add_argument("--max-turns", metavar="N", help="end after so many turns")

    def run(self, options: Options, output: Output) -> None:
        """Run until the end. A body that is still running then is left behind with the process."""
        served = served_plane(options.text("plane"))
        worker = Worker(
            concurrency=options.number("concurrency", least=1),
            queues=options.names("queues"),
            plane=None if served is None else served.plane,
            until_idle=options.flag("until_idle"),
            max_turns=options.number("max_turns", least=1),
        )
        using = spine_alias()
        if missing := missing_tables(using):
            raise refusal(lacking(using, missing), Exit.UNAVAILABLE)
        with asked_to_stop(partial(stop, worker, output), partial(quit_at_once, output)):
            queues = ", ".join(options.names("queues")) or "all"
            only = "" if served is None else f", plane {served.label}"
            output.talk(
                f"durable worker {process_identity()} is ready: database {using}{only}, queues {queues},"
                f" concurrency {worker.concurrency}"
            )
            worker.run()
        if worker.stuck:
            exit_at_once(Exit.OK)


def served_plane(name: str | None) -> Place | None:
    """The plane that alone is served; ``None`` for all. Refuses one that nobody registered, and a closed one."""
    if name is None:
        return None
    place = named_place(name)
    if place.is_closed:
        raise refusal(f"data plane {name!r} is closed: nothing on it is run", Exit.REFUSED)
    return place


def stop(worker: Worker, output: Output, number: int) -> None:
    """The first signal."""
    worker.request_stop()
    output.talk(f"{signal.Signals(number).name}: taking nothing new; a second one exits at once")


def quit_at_once(output: Output, number: int) -> None:
    """A later signal: leases lapse, other workers take over."""
    output.talk(f"{signal.Signals(number).name}: exiting at once")
    exit_at_once(128 + number)
