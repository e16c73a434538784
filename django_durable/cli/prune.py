"""prune: remove executions that ended long enough ago, with all that belongs to them."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections import Counter
from datetime import timedelta
from typing import Any

from django_durable.cli.away import refuse_away
from django_durable.cli.exits import usage
from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.places import add_plane_filter, chosen_places
from django_durable.cli.verb import Verb
from django_durable.conf import config
from django_durable.durations import as_timedelta
from django_durable.engine.retention import Terms
from django_durable.models.execution import TERMINAL
from django_durable.operators.prune import Pruned, prune

__all__ = ["Prune"]

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Prune(Verb):
    """Whole trees, never one that is live, has an open dead letter or an intent under way."""

    name = "prune"
    summary = "Remove executions that ended long enough ago, with their histories."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which, and how old."""
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="count rows and bytes, and remove nothing")
        parser.add_argument(
            "--older-than",
            metavar="AGE",
            help="ended longer ago than this, in seconds or as 90m, 12h, 30d, 8w; by default what RETENTION says",
        )
        parser.add_argument("--status", metavar="A,B", help=f"one or more of {', '.join(TERMINAL)}")
        parser.add_argument("--workflow", metavar="NAME", help="of this workflow; * and ? stand for others")
        add_plane_filter(parser)
        parser.add_argument("--tenant", help="of this tenant")
        parser.add_argument("--limit", metavar="N", help="so many trees, at most")
        parser.add_argument(
            "--dead-letters",
            action="store_true",
            help="also with open dead letters, which go with them; needs --older-than",
        )
        parser.add_argument("--actor", help="who does it; by default the user of the operating system")

    def run(self, options: Options, output: Output) -> None:
        """Show what went, or would go."""
        dry_run = options.flag("dry_run")
        answers = prune(
            actor=options.actor(),
            terms=terms_of(options),
            places=chosen_places(options),
            dry_run=dry_run,
            limit=options.number("limit", least=1),
        )
        total = summed([pruned for _place, pruned in answers.found], dry_run=dry_run)
        document = {"dry_run": dry_run, **total.as_dict()}
        if output.as_json:
            planes = {place.label: pruned.as_dict() for place, pruned in answers.found}
            output.document({**document, "planes": planes})
        else:
            write(document, output)
        refuse_away(answers.away, output)


def terms_of(options: Options) -> Terms:
    """What the options ask for. Raises the usage error where nothing says how old."""
    older_than = age(options)
    statuses = options.names("status") or TERMINAL
    for status in statuses:
        if status not in TERMINAL:
            raise usage(f"--status {status!r} is no status of an end; there are {', '.join(TERMINAL)}")
    if older_than is None and not config().retention:
        raise usage("--older-than must say how old, since DURABLE['RETENTION'] names no period")
    if options.flag("dead_letters") and older_than is None:
        raise usage("--dead-letters needs --older-than: RETENTION never removes an open dead letter")
    return Terms(
        periods=config().retention,
        older_than=older_than,
        workflow=options.text("workflow") or "",
        statuses=statuses,
        tenant=options.text("tenant"),
        open_letters=options.flag("dead_letters"),
    )


def age(options: Options) -> timedelta | None:
    """``--older-than``: a duration, or a text with a unit."""
    value = options.raw("older_than")
    if isinstance(value, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", value.strip())
        if found is None:
            raise usage(f"--older-than must be seconds, or a number with s, m, h, d or w, not {value!r}")
        value = float(found[1]) * UNITS[found[2]]
    try:
        return None if value is None else as_timedelta(value, name="--older-than")
    except (TypeError, ValueError) as error:
        raise usage(str(error)) from None


def summed(places: list[Pruned], *, dry_run: bool) -> Pruned:
    """All planes together."""
    total = Pruned(bytes=0 if dry_run else None)
    for one in places:
        total.trees += one.trees
        total.rows += one.rows
        total.kept += one.kept
        if total.bytes is not None:
            total.bytes += one.bytes or 0
    return total


def write(document: dict[str, Any], output: Output) -> None:
    """As text."""
    kept: Counter[str] = document.pop("kept")
    rows: Counter[str] = document.pop("rows")
    output.pairs({**document, **rows, **{f"kept: {reason}": count for reason, count in kept.items()}})
