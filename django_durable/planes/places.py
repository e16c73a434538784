"""Place: a database that holds executions. Looks at all of them, each in an error boundary of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db import DatabaseError, InterfaceError, connections

from django_durable.database_errors import first_line, is_disconnect, is_mistake
from django_durable.errors import PlaneUnavailable
from django_durable.models import DataPlane
from django_durable.planes.behind import behind
from django_durable.planes.registry import all_planes
from django_durable.planes.selection import spine_alias

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One of them: a plane's database, or the spine's own, whose ``plane`` is ``''`` as in its hints."""

    plane: str
    alias: str
    state: str = DataPlane.State.ACTIVE
    generation: int = 0

    @property
    def label(self) -> str:
        """What people call it: the plane's name; the alias, where it is the spine's own."""
        return self.plane or self.alias

    @property
    def is_spine(self) -> bool:
        """Whether its hints are in the same database."""
        return self.alias == spine_alias()

    @property
    def is_closed(self) -> bool:
        """Whether its work is left alone."""
        return self.state == DataPlane.State.CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """A place that gave no answer, and why: one line, without values."""

    place: Place
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(Generic[T]):
    """What the places said, and which said nothing."""

    found: list[tuple[Place, T]]
    away: list[Away]


def all_places() -> list[Place]:
    """The spine's own database, then every plane by name; of two planes on one database the first."""
    spine = spine_alias()
    first: dict[str, Place] = {}
    for plane in all_planes().values():
        if plane.database != spine and plane.database not in first:
            first[plane.database] = Place(
                plane=plane.name, alias=plane.database, state=plane.state, generation=plane.generation
            )
    return [Place(plane="", alias=spine), *sorted(first.values(), key=lambda place: place.plane)]


def ask(places: Iterable[Place], question: Callable[[Place], T]) -> Answers[T]:
    """Ask each in turn, whatever the breakers say: this is for people who want to know.

    An outage, a timeout, a lock or a missing right is that place's alone. Raised are the spine's own errors (without
    it there is no answer at all), and what is wrong with the statement itself.
    """
    answers: Answers[T] = Answers(found=[], away=[])
    for place in places:
        if place.alias not in connections.settings:
            answers.away.append(Away(place=place, reason=f"{place.alias!r} is not in DATABASES here"))
            continue
        try:
            answers.found.append((place, question(place)))
        except (DatabaseError, InterfaceError) as error:
            if place.is_spine:
                raise
            answers.away.append(Away(place=place, reason=_reason(place, error)))
    return answers


def _reason(place: Place, error: DatabaseError | InterfaceError) -> str:
    """Why it gave no answer. Raises the error again where the statement itself was wrong."""
    if is_disconnect(error):
        close_quietly(place.alias)
        return f"database {place.alias!r} is unavailable: {first_line(error)}"
    if not is_mistake(error):
        return f"database {place.alias!r} refused to answer: {first_line(error)}"
    missing = lacks(place.alias, error)
    return f"database {place.alias!r} lacks {missing} migration(s); run: manage.py durable planes migrate"


def lacks(alias: str, error: DatabaseError | InterfaceError) -> int:
    """How many migrations a plane lacks on which a statement failed. Raises the error again where that is not why."""
    if alias == spine_alias() or connections[alias].in_atomic_block:
        raise error
    try:
        missing = behind(alias)
    except (DatabaseError, InterfaceError):
        raise error from None
    if not missing:
        raise error
    return len(missing)


def close_quietly(alias: str) -> None:
    """Let the next statement open a connection anew."""
    try:
        connections[alias].close()
    except DatabaseError:
        pass


def place_on(alias: str) -> Place:
    """The place on this database. Raises ``PlaneUnavailable`` where there is none."""
    for place in all_places():
        if place.alias == alias:
            return place
    raise PlaneUnavailable(f"database {alias!r} is no data plane")
