"""Scene: what one examination looks at. The places that answer, and those that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from django_durable.models import Execution
from django_durable.models.execution import ACTIVE
from django_durable.planes.behind import behind
from django_durable.planes.places import Away, Place, all_places, ask
from django_durable.planes.selection import spine_alias

__all__ = ["PAGE", "Scene"]

T = TypeVar("T")

PAGE = 500
"""Rows of one database that are compared with another one at a time."""


class Scene:
    """The spine, and every place that is open, answers and has its migrations.

    One that stops to answer in the middle is looked at no further, and delays nobody else.
    """

    def __init__(self) -> None:
        self.spine = spine_alias()
        known = all_places()
        self.names = {place.plane for place in known}
        self.closed = [place for place in known if place.is_closed]
        self.away: list[Away] = []
        self.lagging: list[tuple[Place, list[str]]] = []
        self.places = [place for place in known if not place.is_closed]
        for place, missing in list(self.each(lambda one: [] if one.is_spine else behind(one.alias))):
            if missing:
                self.lagging.append((place, missing))
                self.places.remove(place)

    @property
    def own(self) -> Place:
        """The spine's own database: the one that always answers."""
        return next(place for place in self.places if place.is_spine)

    @property
    def planes(self) -> list[Place]:
        """The others."""
        return [place for place in self.places if not place.is_spine]

    def each(
        self, question: Callable[[Place], T], places: Iterable[Place] | None = None
    ) -> Iterator[tuple[Place, T]]:
        """What each place says; those that give no answer are left out from now on."""
        answers = ask(list(self.places if places is None else places), question)
        for one in answers.away:
            self.away.append(one)
            self.places.remove(one.place)
        yield from answers.found

    def unfinished(self, plane: str, executions: Sequence[UUID]) -> set[UUID] | None:
        """Those that have not ended; ``None`` where the plane does not answer, or is not looked at."""
        for place in self.places:
            if place.plane == plane:
                return next((found for _place, found in self.each(lambda one: alive(one, executions), [place])), None)
        return None


def alive(place: Place, executions: Sequence[UUID]) -> set[UUID]:
    rows = Execution.objects.using(place.alias).filter(pk__in=executions, status__in=ACTIVE)
    return set(rows.values_list("pk", flat=True))
