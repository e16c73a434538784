"""Which planes a verb looks at: those that the caller names by ``--plane`` or ``--tenant``, or all."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from django_durable.cli.exits import Exit, refusal
from django_durable.cli.options import Options
from django_durable.planes.places import Place, all_places, place_on
from django_durable.planes.registry import all_planes, find_plane, planes_in_use
from django_durable.planes.selection import plane_alias, spine_alias

__all__ = ["add_plane_filter", "check_planes", "chosen_places", "named_place"]


def add_plane_filter(parser: ArgumentParser) -> None:
    """``--plane``."""
    parser.add_argument("--plane", metavar="NAME", help="on this data plane only; by default on all of them")


def chosen_places(options: Options) -> list[Place]:
    """The named plane, the tenant's, or every one that is not closed. Raises the refusal for one that is unknown."""
    name, tenant = options.text("plane"), options.text("tenant")
    if name is not None:
        return [named_place(name)]
    if tenant:
        return [place_on(plane_alias(tenant))]
    return [place for place in all_places() if not place.is_closed]


def named_place(name: str) -> Place:
    """The plane of this name, or the spine's own database by its alias."""
    if name == spine_alias() and name not in all_planes():
        return Place(plane="", alias=name)
    check_planes([name])
    plane = find_plane(name)
    if plane.database == spine_alias():
        return Place(plane="", alias=plane.database)
    return Place(plane=name, alias=plane.database, state=plane.state, generation=plane.generation)


def check_planes(names: Sequence[str]) -> None:
    """Refuse names that nobody registered, with those that there are."""
    known = all_planes()
    if planes_in_use() and not known.keys() >= set(names):
        known = all_planes(fresh=True)
    unknown = [name for name in names if name not in known]
    if unknown:
        there_are = ", ".join(sorted({*known, spine_alias()}))
        raise refusal(f"no plane {unknown[0]!r} is configured; there are {there_are}", Exit.NOT_FOUND)
