"""approvals, decide: what executions ask people for, and the answer."""

from __future__ import annotations

from argparse import ArgumentParser
from operator import itemgetter
from typing import Any

from django_durable.cli.away import refuse_away
from django_durable.cli.exits import Exit, refusal, usage
from django_durable.cli.operate import OperatorVerb
from django_durable.cli.options import LARGEST_PAGE, PAGE, Options, add_paging, add_payloads
from django_durable.cli.output import Output
from django_durable.cli.paging import Positions, merged
from django_durable.cli.places import add_plane_filter, chosen_places
from django_durable.cli.verb import Verb
from django_durable.models import ApprovalRequest, Execution
from django_durable.operators.values import Values
from django_durable.planes.places import Place, ask
from django_durable.planes.registry import planes_in_use

__all__ = ["Decide", "ListApprovals"]

COLUMNS = ("execution_id", "name", "prompt", "permission", "requested_at", "expires_at")
ONLY_JSON = ("id", "position", "encoded_data", "execution__workflow", "execution__tenant")


class ListApprovals(Verb):
    """Oldest first, a page at a time; never counts."""

    name = "approvals"
    summary = "List the approvals that executions wait for, oldest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which of them."""
        super().add_arguments(parser)
        add_payloads(parser)
        add_plane_filter(parser)
        parser.add_argument("--tenant", help="of this tenant")
        add_paging(parser, "approvals")

    def run(self, options: Options, output: Output) -> None:
        """Show one page, and say where the next one begins."""
        limit = options.number("limit", least=1, most=LARGEST_PAGE) or PAGE
        places = chosen_places(options)
        positions = Positions.read(options, places)
        values = Values(payloads=options.flag("payloads"))
        answers = ask(places, lambda place: asked_on(place, options.text("tenant"), positions, limit))
        rows = merged(answers, itemgetter("requested_at"))
        page = [shown(row, values) for row in rows[:limit]]
        if output.as_json:
            output.document(page)
        else:
            output.table(page, ("plane", *COLUMNS) if planes_in_use() else COLUMNS)
        if len(rows) > limit:
            output.talk(f"there are more: --after {positions.behind(page)}")
        refuse_away(answers.away, output)


def asked_on(place: Place, tenant: str | None, positions: Positions, limit: int) -> list[dict[str, Any]]:
    """The oldest of one plane behind its position, one more than a page has."""
    asked = ApprovalRequest.objects.using(place.alias).open()
    if tenant is not None:
        asked = asked.filter(execution__tenant=tenant)
    after = positions.of(place)
    if after is not None:
        asked = asked.filter(pk__gt=after)
    found = asked.order_by("pk").values(*COLUMNS, *ONLY_JSON)
    return [{**row, "plane": place.label} for row in found[: limit + 1]]


def shown(row: dict[str, Any], values: Values) -> dict[str, Any]:
    row = {name.removeprefix("execution__"): value for name, value in row.items()}
    prompt = row["prompt"] if values.payloads else f"str, {len(row['prompt'])} characters"
    return {**row, "prompt": prompt, "data": values.value(row.pop("encoded_data"))}


class Decide(OperatorVerb):
    """Answers what an execution asks for, once."""

    name = "decide"
    summary = "Approve or reject what an execution asks for; refused where that is decided already."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which request, and the answer."""
        super().add_arguments(parser)
        parser.add_argument("approval_name", metavar="NAME", help="the approval's name")
        parser.add_argument("--approve", action="store_true", help="let it pass")
        parser.add_argument("--reject", action="store_true", help="do not")
        parser.add_argument("--data", metavar="JSON", help="what the workflow gets beside the answer")

    def change(self, execution: Execution[Any], options: Options, *, actor: str, reason: str) -> None:
        """Decide it, or say that somebody or something else was first."""
        approve, reject = options.flag("approve"), options.flag("reject")
        name = options.name("approval_name", "approval name") or ""
        if approve is reject:
            raise usage("decide takes one of --approve and --reject")
        won = execution.decide(name, approved=approve, actor=actor, reason=reason, data=options.json("data"))
        if not won:
            raise refusal(
                f"approval {name!r} of execution {execution.pk} is decided, or was not in time", Exit.REFUSED
            )
