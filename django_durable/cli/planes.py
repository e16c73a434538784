"""planes: where executions live, and who moves where."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django_durable.checks.databases import check_new_plane
from django_durable.cli.exits import Exit, refusal, usage
from django_durable.cli.migrating import migrate_planes
from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.places import check_planes
from django_durable.cli.verb import Verb
from django_durable.operators import planes as acts
from django_durable.operators.epoch import bump_epoch
from django_durable.operators.move.tenant import move_tenant
from django_durable.operators.plane_rows import plane_rows
from django_durable.planes.registry import planes_in_use
from django_durable.planes.selection import spine_alias

__all__ = ["Planes"]

COLUMNS = ("name", "database", "state", "generation", "reachable", "migrations_behind", "unfinished", "tenants")


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One of the verb's actions: what follows its name, and what it does."""

    takes: tuple[str, ...] = ()
    run: Callable[[list[str], Options, Output], None]
    any_number: bool = False


class Planes(Verb):
    """Acts on planes and on the placement of tenants. What changes something is attributed."""

    name = "planes"
    summary = "List data planes; add, migrate, drain and close them; place and move tenants."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The action and its names."""
        super().add_arguments(parser)
        parser.add_argument("plane_action", metavar="ACTION", choices=tuple(ACTS), help=", ".join(map(called, ACTS)))
        parser.add_argument("plane_arguments", metavar="NAME", nargs="*", help="what the action takes")
        parser.add_argument("--to", metavar="PLANE", help="move: the plane that the tenant goes to")
        parser.add_argument("--force", action="store_true", help="close: whatever is on the plane")
        parser.add_argument("--actor", help="who does it; by default the user of the operating system")

    def run(self, options: Options, output: Output) -> None:
        """Do it."""
        action = str(options.raw("plane_action"))
        names = [str(name) for name in options.raw("plane_arguments") or ()]
        act = ACTS[action]
        if not act.any_number and len(names) != len(act.takes):
            raise usage(f"write: planes {called(action)}")
        for option, owner in (("to", "move"), ("force", "close")):
            if options.raw(option) and action != owner:
                raise usage(f"--{option} belongs to planes {owner}")
        if not planes_in_use() and action != "list":
            raise refusal(
                "this project has no data planes; add django_durable.routers.PlaneRouter to DATABASE_ROUTERS",
                Exit.REFUSED,
            )
        try:
            act.run(names, options, output)
        except ValueError as error:
            raise refusal(str(error), Exit.REFUSED) from error


def called(action: str) -> str:
    """How an action is written."""
    return " ".join([action, *ACTS[action].takes])


def show(_names: list[str], _options: Options, output: Output) -> None:
    rows = plane_rows()
    if output.as_json:
        output.document(rows)
    else:
        output.table(rows, COLUMNS)
        if not rows:
            output.talk(f"no data planes: everything is on {spine_alias()!r}")
        for row in rows:
            if row["reason"]:
                output.talk(f"{row['name']}: {row['reason']}")


def add(names: list[str], options: Options, output: Output) -> None:
    name, database = names
    acts.add_plane(name, database, actor=options.actor())
    if database != spine_alias():
        for message in check_new_plane(database):
            output.talk(f"{message.id}: {message.msg} {message.hint}")
    done(output, plane=name, database=database, state="active")


def drain(names: list[str], options: Options, output: Output) -> None:
    check_planes(names)
    acts.drain_plane(names[0], actor=options.actor())
    done(output, plane=names[0], state="draining")


def close(names: list[str], options: Options, output: Output) -> None:
    check_planes(names)
    acts.close_plane(names[0], actor=options.actor(), force=options.flag("force"))
    done(output, plane=names[0], state="closed")


def place(names: list[str], options: Options, output: Output) -> None:
    tenant, plane = names
    check_planes([plane])
    acts.place(tenant, plane, actor=options.actor())
    done(output, tenant=tenant, plane=plane)


def move(names: list[str], options: Options, output: Output) -> None:
    to = options.text("to")
    if to is None:
        raise usage("write: planes move TENANT --to PLANE")
    check_planes([to])
    moved = move_tenant(names[0], to, actor=options.actor())
    done(output, tenant=names[0], plane=to, executions=moved)


def bump(names: list[str], options: Options, output: Output) -> None:
    epoch = bump_epoch(names[0], actor=options.actor())
    done(output, tenant=names[0], epoch=epoch)


def done(output: Output, **facts: Any) -> None:
    """What is the case now."""
    if output.as_json:
        output.document(facts)
    else:
        output.pairs(facts)


ACTS = {
    "list": Act(run=show),
    "add": Act(takes=("NAME", "DATABASE"), run=add),
    "migrate": Act(takes=("[PLANE…]",), run=migrate_planes, any_number=True),
    "drain": Act(takes=("PLANE",), run=drain),
    "close": Act(takes=("PLANE",), run=close),
    "place": Act(takes=("TENANT", "PLANE"), run=place),
    "move": Act(takes=("TENANT",), run=move),
    "bump-epoch": Act(takes=("TENANT",), run=bump),
}
