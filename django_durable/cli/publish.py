"""publish: tell a tenant's executions that something has happened."""

from __future__ import annotations

from argparse import ArgumentParser

from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.verb import Verb
from django_durable.events import publish

__all__ = ["Publish"]


class Publish(Verb):
    """The payload arrives as the plain JSON value that was given."""

    name = "publish"
    summary = "Publish an event; prints its id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Its name, what it carries, and for whom."""
        parser.add_argument("event_name", metavar="NAME", help="the event's name")
        super().add_arguments(parser)
        parser.add_argument("--payload", metavar="JSON", help="what it carries; by default null")
        parser.add_argument("--tenant", help="the tenant whose executions it is for")
        parser.add_argument("--dedup-key", metavar="KEY", help="a repeated key publishes nothing")

    def run(self, options: Options, output: Output) -> None:
        """Publish it."""
        name = options.name("event_name", "event name") or ""
        tenant, dedup_key = options.name("tenant", "tenant"), options.name("dedup_key", "dedup_key")
        event = publish(name, options.json("payload"), tenant=tenant, dedup_key=dedup_key)
        if output.as_json:
            output.document({"event_id": event, "name": name})
        else:
            output.line(str(event))
