"""Claims in queues with limits: what these admit, in the order that they declare.

A broker's message for work in a queue with limits is a permission to take the next one there: which one that is, the
queue decides, and a message that comes when there is no room does nothing.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from django_durable.dispatch.flow_queue import REFRESH_SECONDS, forget, limited_queues, refresh
from django_durable.engine.transitions.admission import admit, rooms_of
from django_durable.engine.transitions.claim_planes import planes_to_try
from django_durable.engine.transitions.hint_lease import Odd, Terms
from django_durable.models import DispatchHint
from django_durable.planes.registry import planes_in_use
from django_durable.sql import Sql

_turn = count()


def lease_within_limits(using: str, terms: Terms) -> list[Odd]:
    """Lease what the limits of the served queues admit; every other pass begins with another queue.

    Without such a queue this costs nothing.
    """
    queues = _limited(using, terms)
    if terms.empty or not queues:
        return []
    planes = planes_to_try(using, terms.plane, own=True) if planes_in_use() else Sql("h.plane = ''")
    if planes is None:
        return []
    rooms = rooms_of(using, queues)
    if len(rooms) < len(queues):
        forget(using)  # rows were deleted; those of declared queues are made again
    leased: list[Odd] = []
    first = next(_turn) % len(rooms) if rooms else 0
    for room in [*rooms[first:], *rooms[:first]]:
        left = terms.limit - len(leased)
        if left > 0:
            leased += admit(using, replace(terms, limit=left), room, planes)
    return leased


def _limited(using: str, terms: Terms) -> tuple[str, ...]:
    if terms.hint_id is None:
        return tuple(sorted(limited_queues(using, frozenset(terms.queues))))
    if terms.empty or not refresh(using, at_most_every=REFRESH_SECONDS):
        return ()
    queue = DispatchHint.objects.using(using).filter(pk=terms.hint_id).values_list("queue", flat=True).first()
    return () if queue is None else (queue,)
