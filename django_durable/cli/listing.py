"""list: executions, newest first, a page at a time."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser
from typing import Any

from django.db.models import Q
from django.db.models.fields.json import KeyTransform

from django_durable.cli.exits import usage
from django_durable.cli.options import LARGEST_PAGE, PAGE, Options, add_paging
from django_durable.cli.output import Output
from django_durable.cli.verb import Verb
from django_durable.models import Execution, ExecutionQuerySet, Status
from django_durable.planes.selection import plane_alias

__all__ = ["ListExecutions"]

COLUMNS = ("id", "workflow", "version", "status", "key", "queue", "created_at", "finished_at")
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
        parser.add_argument("--tenant", help="of this tenant")
        parser.add_argument("--key", help="with this key: the runs of its chain")
        parser.add_argument("--queue", help="on this queue")
        parser.add_argument("--tag", action="append", metavar="NAME=VALUE", help="with this tag; may be repeated")
        add_paging(parser, "executions")

    def run(self, options: Options, output: Output) -> None:
        """Show one page, and say where the next one begins."""
        limit = options.number("limit", least=1, most=LARGEST_PAGE) or PAGE
        found = wanted(options).order_by("-id").values(*COLUMNS, *ONLY_JSON)
        rows: list[dict[str, Any]] = list(found[: limit + 1])
        page = rows[:limit]
        if output.as_json:
            output.document(page)
        else:
            output.table(page, COLUMNS)
        if len(rows) > limit:
            output.talk(f"there are more: --after {page[-1]['id']}")


def wanted(options: Options) -> ExecutionQuerySet:
    """The executions that pass every filter."""
    rows = Execution.objects.using(plane_alias(options.text("tenant") or ""))
    statuses = options.names("status")
    for status in statuses:
        check_status(status)
    if statuses:
        rows = rows.filter(status__in=statuses)
    for name in ("workflow", "tenant", "key", "queue"):
        text = options.text(name)
        if text is not None:
            rows = rows.filter(**{name: text})
    for number, (tag, values) in enumerate(tags(options.raw("tag"))):
        rows = tagged(rows, f"tag_{number}", tag, values)
    after = options.uuid("after")
    return rows if after is None else rows.filter(pk__lt=after)


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


def readings(text: str) -> list[Any]:
    """``5`` may be the text or the number, ``true`` the text or the bool."""
    if text in ("true", "false"):
        return [text, text == "true"]
    try:
        return [text, int(text)]
    except ValueError:
        return [text]


def tagged(rows: ExecutionQuerySet, alias: str, name: str, values: list[Any]) -> ExecutionQuerySet:
    matches = Q()
    for value in values:
        matches |= Q((alias, value))
    # By the expression, not by a keyword: a name with two underscores would become another lookup.
    return rows.alias(**{alias: KeyTransform(name, "tags")}).filter(matches)
