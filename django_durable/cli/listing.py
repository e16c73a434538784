"""list: executions, newest first, a page at a time."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from django_durable.cli.away import refuse_away
from django_durable.cli.exits import usage
from django_durable.cli.options import LARGEST_PAGE, PAGE, Options, add_paging
from django_durable.cli.output import Output
from django_durable.cli.places import add_plane_filter, chosen_places
from django_durable.cli.verb import Verb
from django_durable.models import Execution, ExecutionQuerySet, Status
from django_durable.operators.tags import readings, tagged
from django_durable.planes.places import Place, ask
from django_durable.planes.registry import planes_in_use

__all__ = ["ListExecutions"]

COLUMNS = ("id", "workflow", "version", "status", "key", "queue", "created_at", "finished_at")
Narrow = Callable[[ExecutionQuerySet], ExecutionQuerySet]
ONLY_JSON = ("tenant", "run", "priority", "tags", "correlation_id", "wake_at", "deadline", "started_at")


class ListExecutions(Verb):
    """Pages by id; never counts, and leaves the large columns where they are."""

    name = "list"
    summary = "List executions, newest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The filters; all of them have to hold."""
        super().add_arguments(parser)
        parser.add_argument("--status", metavar="A,B", help=f"one or more of {', '.join(Status.values)}")
        parser.add_argument("--workflow", metavar="NAME", help="of this workflow")
        add_plane_filter(parser)
        parser.add_argument("--tenant", help="of this tenant")
        parser.add_argument("--key", help="with this key: the runs of its chain")
        parser.add_argument("--queue", help="on this queue")
        parser.add_argument("--tag", action="append", metavar="NAME=VALUE", help="with this tag; may be repeated")
        add_paging(parser, "executions")

    def run(self, options: Options, output: Output) -> None:
        """Show one page, and say where the next one begins."""
        limit = options.number("limit", least=1, most=LARGEST_PAGE) or PAGE
        narrow = filters(options)
        answers = ask(chosen_places(options), lambda place: rows_of(place, narrow, limit))
        rows = sorted((row for _place, found in answers.found for row in found), key=itemgetter("id"), reverse=True)
        page = rows[:limit]
        if output.as_json:
            output.document(page)
        else:
            output.table(page, ("plane", *COLUMNS) if planes_in_use() else COLUMNS)
        if len(rows) > limit:
            output.talk(f"there are more: --after {page[-1]['id']}")
        refuse_away(answers.away, output)


def rows_of(place: Place, narrow: Narrow, limit: int) -> list[dict[str, Any]]:
    """The newest of one plane, one more than a page has."""
    found = narrow(Execution.objects.using(place.alias)).order_by("-id").values(*COLUMNS, *ONLY_JSON)
    return [{**row, "plane": place.label} for row in found[: limit + 1]]


def filters(options: Options) -> Narrow:
    """What narrows a plane's executions to those that pass every filter. A wrong one is refused here, unasked."""
    statuses = options.names("status")
    for status in statuses:
        check_status(status)
    given = {name: options.text(name) for name in ("workflow", "tenant", "key", "queue")}
    wanted_tags = tags(options.raw("tag"))
    after = options.uuid("after")

    def narrow(rows: ExecutionQuerySet) -> ExecutionQuerySet:
        if statuses:
            rows = rows.filter(status__in=statuses)
        rows = rows.filter(**{name: text for name, text in given.items() if text is not None})
        for number, (tag, values) in enumerate(wanted_tags):
            rows = tagged(rows, f"tag_{number}", tag, values)
        return rows if after is None else rows.filter(pk__lt=after)

    return narrow


def check_status(status: str) -> None:
    if status not in Status.values:
        near = difflib.get_close_matches(status, Status.values, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(Status.values)}"
        raise usage(f"--status {status!r} does not exist{hint}")


def tags(given: Any) -> list[tuple[str, list[Any]]]:
    """Each tag with the values that its text may stand for: tags are str, int or bool."""
    if given is None:
        return []
    if isinstance(given, dict):
        return [(name, [value]) for name, value in given.items()]
    found = []
    for text in [given] if isinstance(given, str) else given:
        name, equals, value = str(text).partition("=")
        if not (name and equals):
            raise usage(f"--tag must be NAME=VALUE, not {text!r}")
        found.append((name, readings(value)))
    return found
