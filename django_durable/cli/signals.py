"""signal: send a message to an execution."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django_durable.cli.exits import usage
from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.verb import ExecutionVerb
from django_durable.models import Execution

__all__ = ["Signal"]


class Signal(ExecutionVerb):
    """The payload arrives as the plain JSON value that was given."""

    name = "signal"
    summary = "Send a signal to an execution; prints the message's id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Its name, after the id or as an option, and what it carries."""
        super().add_arguments(parser)
        parser.add_argument("signal_name", metavar="NAME", nargs="?", help="the signal's name")
        parser.add_argument("--name", help="the signal's name, instead of the argument")
        parser.add_argument("--payload", metavar="JSON", help="what it carries; by default null")
        parser.add_argument("--dedup-key", metavar="KEY", help="a repeated key sends nothing and prints the first id")

    def act(self, execution: Execution[Any], options: Options, output: Output) -> None:
        """Send it; refused once the execution has ended."""
        given = (options.name("signal_name", "signal name"), options.name("name", "signal name"))
        names = {text for text in given if text is not None}
        if len(names) != 1:
            raise usage("signal takes one name: manage.py durable signal ID NAME")
        dedup_key = options.name("dedup_key", "dedup_key")
        message = execution.signal(names.pop(), options.json("payload"), dedup_key=dedup_key)
        if output.as_json:
            output.document({"id": execution.pk, "message_id": message})
        else:
            output.line(str(message))
