"""The sweeps of limits: queues that have no row yet, and singletons whose free slot nobody saw. No user code."""

from __future__ import annotations

from django_durable.dispatch.flow_queue import give_lanes, refresh
from django_durable.engine.transitions.singleton import admit_waiting, drop_ended_places, in_line
from django_durable.planes.selection import spine_alias

MARKS = 200
"""Keys of singletons that one pass looks at."""

_waiting_after: dict[str, str] = {}
_places_after: dict[str, int] = {}


def look_at_queues(plane: str) -> int:
    """Declared queues get their rows; what was published before its queue had limits takes part in it from here."""
    if plane != spine_alias():
        return 0
    return sum(give_lanes(plane, queue) for queue in refresh(plane))


def admit_to_singletons(plane: str) -> int:
    """Those whose slot was freed while nobody saw that they wait; places of what has ended are given up."""
    marks = in_line(plane, _waiting_after.get(plane, ""), MARKS)
    _waiting_after[plane] = marks[-1] if len(marks) == MARKS else ""
    _places_after[plane] = drop_ended_places(plane, _places_after.get(plane, 0))
    return sum(admit_waiting(plane, mark) for mark in marks)
