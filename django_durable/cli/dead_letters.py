"""dead-letters: executions that ended without a result, each time they did."""

from __future__ import annotations

from argparse import ArgumentParser
from operator import itemgetter
from typing import Any

from django_durable.cli.away import refuse_away
from django_durable.cli.options import LARGEST_PAGE, PAGE, Options, add_paging, add_payloads
from django_durable.cli.output import Output
from django_durable.cli.paging import Positions, merged
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
        places = chosen_places(options)
        positions = Positions.read(options, places)
        values = Values(payloads=options.flag("payloads"))
        answers = ask(places, lambda place: letters_of(place, options, positions, limit))
        rows = merged(answers, itemgetter("created_at"), reverse=True)
        page = [shown(row, values) for row in rows[:limit]]
        if output.as_json:
            output.document(page)
        else:
            columns = [name for name in ("plane", *COLUMNS) if name != "id" and (name != "plane" or planes_in_use())]
            output.table([{**row, "error": row["error"]["type"]} for row in page], [*columns, "error"])
        if len(rows) > limit:
            output.talk(f"there are more: --after {positions.behind(page)}")
        refuse_away(answers.away, output)


def letters_of(place: Place, options: Options, positions: Positions, limit: int) -> list[dict[str, Any]]:
    """The newest of one plane behind its position, one more than a page has."""
    letters = DeadLetter.objects.using(place.alias)
    if options.flag("open"):
        letters = letters.filter(retried_at=None)
    if options.text("tenant") is not None:
        letters = letters.filter(tenant=options.text("tenant"))
    after = positions.of(place)
    if after is not None:
        letters = letters.filter(pk__lt=after)
    found = letters.order_by("-id").values(*COLUMNS, *ONLY_JSON, "encoded_error")
    return [{**row, "plane": place.label} for row in found[: limit + 1]]


def shown(row: dict[str, Any], values: Values) -> dict[str, Any]:
    stored = row.pop("encoded_error")
    return {**row, "error": values.error(stored, status=row["status"]) or {"type": ""}}
