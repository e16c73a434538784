"""dead-letters: executions that ended without a result, each time they did."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django_durable.cli.options import LARGEST_PAGE, PAGE, Options, add_paging, add_payloads
from django_durable.cli.output import Output
from django_durable.cli.values import Values
from django_durable.cli.verb import Verb
from django_durable.models import DeadLetter
from django_durable.planes.selection import plane_alias

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
        add_paging(parser, "dead letters")

    def run(self, options: Options, output: Output) -> None:
        """Show one page, and say where the next one begins."""
        limit = options.number("limit", least=1, most=LARGEST_PAGE) or PAGE
        letters = DeadLetter.objects.using(plane_alias(""))
        if options.flag("open"):
            letters = letters.filter(retried_at=None)
        after = options.number("after")
        if after is not None:
            letters = letters.filter(pk__lt=after)
        values = Values(payloads=options.flag("payloads"))
        found = letters.order_by("-id").values(*COLUMNS, *ONLY_JSON, "encoded_error")
        rows = [shown(row, values) for row in found[: limit + 1]]
        page = rows[:limit]
        if output.as_json:
            output.document(page)
        else:
            columns = [name for name in COLUMNS if name != "id"]
            output.table([{**row, "error": row["error"]["type"]} for row in page], [*columns, "error"])
        if len(rows) > limit:
            output.talk(f"there are more: --after {page[-1]['id']}")


def shown(row: dict[str, Any], values: Values) -> dict[str, Any]:
    stored = row.pop("encoded_error")
    return {**row, "error": values.error(stored, status=row["status"]) or {"type": ""}}
