"""schedules: what is started when, what became of each time, and what operators do about it."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from django_durable.authoring.registry import find_workflow
from django_durable.cli.away import refuse_away
from django_durable.cli.exits import Exit, refusal, usage
from django_durable.cli.options import LARGEST_PAGE, PAGE, Options, add_attribution, add_paging
from django_durable.cli.output import Output
from django_durable.cli.places import add_plane_filter, chosen_places
from django_durable.cli.schedule_rows import FIRE_COLUMNS, SCHEDULE_COLUMNS, fire_row, schedule_row
from django_durable.cli.verb import Verb
from django_durable.errors import DurableError
from django_durable.models import Overlap, Schedule, ScheduleFire
from django_durable.operators.schedules.find import find_schedule
from django_durable.operators.schedules.verbs import add as add_schedule
from django_durable.payloads import coerce_arguments
from django_durable.planes.places import Place, ask
from django_durable.planes.registry import planes_in_use

__all__ = ["Schedules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One of the verb's actions: which options it takes beside its schedule, and what it does."""

    run: Callable[[str, Options, Output], None]
    named: bool = True
    takes: tuple[str, ...] = ()


TIMING = ("cron", "every", "timezone", "overlap", "catch_up", "jitter")


class Schedules(Verb):
    """Acts on schedules by name. What changes something is attributed."""

    name = "schedules"
    summary = "List schedules and what became of their times; pause, trigger, backfill, edit them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The action, the schedule, and what the action takes."""
        super().add_arguments(parser)
        parser.add_argument("schedule_action", metavar="ACTION", choices=tuple(ACTS), help=", ".join(ACTS))
        parser.add_argument("schedule_name", metavar="NAME", nargs="?", help="the schedule; all but list take one")
        parser.add_argument("--tenant", help="of this tenant")
        add_plane_filter(parser)
        add_paging(parser, "rows")
        parser.add_argument("--from", dest="from_time", metavar="TIME", help="backfill: the first time, included")
        parser.add_argument("--to", dest="to_time", metavar="TIME", help="backfill: the last time, included")
        parser.add_argument("--workflow", metavar="NAME", help="add: what is started")
        parser.add_argument("--input", metavar="JSON", help="add: its arguments by name")
        parser.add_argument("--cron", metavar="EXPRESSION", help='add, edit: "30 2 * * *"')
        parser.add_argument("--every", metavar="SECONDS", help="add, edit: instead of --cron")
        parser.add_argument("--timezone", metavar="ZONE", help="add, edit: of --cron, like Europe/Berlin")
        parser.add_argument("--overlap", metavar="POLICY", help=f"add, edit: {', '.join(Overlap.values)}")
        parser.add_argument("--catch-up", metavar="POLICY", help="add, edit: none, latest, all, all:N")
        parser.add_argument("--jitter", metavar="SECONDS", help="add, edit: delay each time by up to so much")
        add_attribution(parser)

    def run(self, options: Options, output: Output) -> None:
        """Do it."""
        action, name = str(options.raw("schedule_action")), options.text("schedule_name")
        act = ACTS[action]
        if act.named is not (name is not None):
            raise usage(f"write: schedules {action}{' NAME' if act.named else ''}")
        for option in (*TIMING, "from_time", "to_time", "workflow", "input"):
            if options.raw(option) is not None and option not in act.takes:
                raise usage(f"--{option.removesuffix('_time').replace('_', '-')} does not belong to {action}")
        try:
            act.run(name or "", options, output)
        except DurableError:
            raise
        except (TypeError, ValueError) as error:
            raise usage(str(error)) from error


def show_all(_name: str, options: Options, output: Output) -> None:
    limit = options.number("limit", least=1, most=LARGEST_PAGE) or PAGE
    tenant, after = options.text("tenant"), options.uuid("after")

    def rows_of(place: Place) -> list[dict[str, Any]]:
        rows = Schedule.objects.using(place.alias).order_by("-pk")
        rows = rows if tenant is None else rows.filter(tenant=tenant)
        rows = rows if after is None else rows.filter(pk__lt=after)
        return [{**schedule_row(row), "plane": place.label} for row in rows[: limit + 1]]

    answers = ask(chosen_places(options), rows_of)
    rows = sorted((row for _place, some in answers.found for row in some), key=itemgetter("id"), reverse=True)
    if output.as_json:
        output.document(rows[:limit])
    else:
        output.table(rows[:limit], ("plane", *SCHEDULE_COLUMNS) if planes_in_use() else SCHEDULE_COLUMNS)
    if len(rows) > limit:
        output.talk(f"there are more: --after {rows[limit - 1]['id']}")
    refuse_away(answers.away, output)


def show_fires(name: str, options: Options, output: Output) -> None:
    schedule = found(name, options)
    limit = options.number("limit", least=1, most=LARGEST_PAGE) or PAGE
    fires = ScheduleFire.objects.using(schedule.using).filter(schedule_id=schedule.pk)
    after = options.number("after")
    if after is not None:
        last = fires.filter(pk=after).values_list("nominal_at", flat=True).first()
        if last is None:
            raise refusal(f"schedule {name!r} has no row {after}", Exit.NOT_FOUND)
        fires = fires.filter(nominal_at__lt=last)
    rows = [fire_row(fire) for fire in fires.order_by("-nominal_at")[: limit + 1]]
    if output.as_json:
        output.document(rows[:limit])
    else:
        output.table(rows[:limit], FIRE_COLUMNS)
    if len(rows) > limit:
        output.talk(f"there are more: --after {rows[limit - 1]['id']}")


def pause(name: str, options: Options, output: Output) -> None:
    schedule = found(name, options)
    schedule.pause(**by(options))
    show(schedule, output)


def resume(name: str, options: Options, output: Output) -> None:
    schedule = found(name, options)
    schedule.resume(**by(options))
    show(schedule, output)


def trigger(name: str, options: Options, output: Output) -> None:
    execution = found(name, options).trigger(**by(options))
    if output.as_json:
        output.document({"execution": execution.pk, "scheduled_for": execution.scheduled_for})
    else:
        output.line(str(execution.pk))


def backfill(name: str, options: Options, output: Output) -> None:
    start, end = moment_of(options, "from_time"), moment_of(options, "to_time")
    rows = [fire_row(fire) for fire in found(name, options).backfill(start, end, **by(options))]
    if output.as_json:
        output.document(rows)
    else:
        output.table(rows, FIRE_COLUMNS)


def add(name: str, options: Options, output: Output) -> None:
    workflow = options.text("workflow")
    if workflow is None:
        raise usage("add takes --workflow NAME")
    plain = options.json("input", default={})
    if not isinstance(plain, dict):
        raise usage('--input must be a JSON object of the arguments by name, like {"order_id": 5}')
    arguments = coerce_arguments(find_workflow(workflow).func, plain)
    tenant = options.text("tenant")
    made = add_schedule(name, workflow, arguments=arguments, tenant=tenant, **timing(options), **by(options))
    show(made, output)


def edit(name: str, options: Options, output: Output) -> None:
    changes = timing(options)
    if not changes:
        raise usage("edit takes what is to change: --cron, --every, --timezone, --overlap, --catch-up, --jitter")
    schedule = found(name, options)
    schedule.edit(**changes, **by(options))
    show(schedule, output)


def remove(name: str, options: Options, output: Output) -> None:
    found(name, options).remove(**by(options))
    if output.as_json:
        output.document({"name": name, "removed": True})
    else:
        output.line("removed")


def found(name: str, options: Options) -> Schedule:
    return find_schedule(name, tenant=options.text("tenant"))


def by(options: Options) -> dict[str, Any]:
    return {"actor": options.actor(), "reason": options.text("reason") or ""}


def timing(options: Options) -> dict[str, Any]:
    """What was given of when it fires."""
    given = {
        "cron": options.text("cron"),
        "every": options.duration("every"),
        "timezone": options.text("timezone"),
        "overlap": options.text("overlap"),
        "catch_up": catch_up_of(options),
        "jitter": options.duration("jitter"),
    }
    return {name: value for name, value in given.items() if value is not None}


def catch_up_of(options: Options) -> Any:
    """``all:10`` is ``("all", 10)``."""
    text = options.text("catch_up")
    kind, colon, most = (text or "").partition(":")
    if not colon:
        return text
    if not most.isdigit():
        raise usage(f"--catch-up must be none, latest, all or all:N, not {text!r}")
    return kind, int(most)


def moment_of(options: Options, name: str) -> datetime:
    moment = options.moment(name)
    if not isinstance(moment, datetime):
        raise usage("backfill takes --from TIME and --to TIME, in ISO 8601 with a time zone")
    return moment


def show(schedule: Schedule, output: Output) -> None:
    row = schedule_row(schedule)
    if output.as_json:
        output.document(row)
    else:
        output.pairs(row)


ACTS = {
    "list": Act(run=show_all, named=False),
    "fires": Act(run=show_fires),
    "pause": Act(run=pause),
    "resume": Act(run=resume),
    "trigger": Act(run=trigger),
    "backfill": Act(run=backfill, takes=("from_time", "to_time")),
    "add": Act(run=add, takes=(*TIMING, "workflow", "input")),
    "edit": Act(run=edit, takes=TIMING),
    "remove": Act(run=remove),
}
