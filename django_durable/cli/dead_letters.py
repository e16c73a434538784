"""dead-letters: executions that ended without a result, each time they did."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from heapq import merge
from operator import itemgetter
from typing import Any
from urllib.parse import quote, unquote

from django_durable.cli.away import refuse_away
from django_durable.cli.exits import usage
from django_durable.cli.options import LARGEST_PAGE, PAGE, Options, add_paging, add_payloads
from django_durable.cli.output import Output
from django_durable.cli.places import add_plane_filter, chosen_places
from django_durable.cli.verb import Verb
from django_durable.models import DeadLetter
from django_durable.operators.values import Values
from django_durable.planes.places import Place, ask
from django_durable.planes.registry import planes_in_use

__all__ = ["ListDeadLetters"]

COLUMNS = (
    "id",
    "execution_id",
    "generation",
    "workflow",
    "version",
    "status",
    "created_at",
    "retried_at",
    "retried_by",
)
ONLY_JSON = ("tenant", "correlation_id", "recoveries")


class ListDeadLetters(Verb):
    """Newest first, a page at a time; never counts."""

    name = "dead-letters"
    summary = "List executions that ended without a result, newest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which of them."""
        super().add_arguments(parser)
        add_payloads(parser)
        parser.add_argument("--open", action="store_true", help="only those that nobody has retried")
        add_plane_filter(parser)
        parser.add_argument("--tenant", help="of this tenant")
        add_paging(parser, "dead letters")

    def run(self, options: Options, output: Output) -> None:
        """Show one page, and say where the next one begins."""
        limit = options.number("limit", least=1, most=LARGEST_PAGE) or PAGE
        positions = read_positions(options)
        places = chosen_places(options)
        if positions.get("") and len(places) > 1:
            raise usage("--after must be what the page before said, NAME:ID for each plane")
        values = Values(payloads=options.flag("payloads"))
        answers = ask(places, lambda place: letters_of(place, options, positions, limit))
        # Each plane's letters stay in the order of their ids, which its next page goes on from.
        rows = list(merge(*(found for _place, found in answers.found), key=itemgetter("created_at"), reverse=True))
        page = [shown(row, values) for row in rows[:limit]]
        if output.as_json:
            output.document(page)
        else:
            columns = [name for name in ("plane", *COLUMNS) if name != "id" and (name != "plane" or planes_in_use())]
            output.table([{**row, "error": row["error"]["type"]} for row in page], [*columns, "error"])
        if len(rows) > limit:
            output.talk(f"there are more: --after {next_positions(places, positions, page)}")
        refuse_away(answers.away, output)


def letters_of(place: Place, options: Options, positions: dict[str, int], limit: int) -> list[dict[str, Any]]:
    """The newest of one plane behind its position, one more than a page has."""
    letters = DeadLetter.objects.using(place.alias)
    if options.flag("open"):
        letters = letters.filter(retried_at=None)
    if options.text("tenant") is not None:
        letters = letters.filter(tenant=options.text("tenant"))
    after = positions.get(place.label, positions.get(""))
    if after is not None:
        letters = letters.filter(pk__lt=after)
    found = letters.order_by("-id").values(*COLUMNS, *ONLY_JSON, "encoded_error")
    return [{**row, "plane": place.label} for row in found[: limit + 1]]


def read_positions(options: Options) -> dict[str, int]:
    """Where each plane's page begins: ``12``, or ``north:12,south:40``, whose names are quoted as in a URL."""
    text = options.text("after")
    if text is None or ":" not in text:
        number = options.number("after")
        return {} if number is None else {"": number}
    positions: dict[str, int] = {}
    for part in text.split(","):
        name, _colon, number_text = part.rpartition(":")
        if not (name and number_text.isascii() and number_text.isdigit()):
            raise usage(f"--after must be a number, or NAME:ID for each plane, not {text!r}")
        positions[unquote(name)] = int(number_text)
    return positions


def next_positions(places: Sequence[Place], before: dict[str, int], page: Sequence[dict[str, Any]]) -> str:
    """What ``--after`` takes for the next page: the last letter shown of each plane."""
    if len(places) == 1:
        return str(page[-1]["id"])
    last = {**before, **{row["plane"]: row["id"] for row in page}}
    return ",".join(f"{quote(name, safe='')}:{number}" for name, number in last.items())


def shown(row: dict[str, Any], values: Values) -> dict[str, Any]:
    stored = row.pop("encoded_error")
    return {**row, "error": values.error(stored, status=row["status"]) or {"type": ""}}
