"""Faults that show in the hints: work that is due, leased or set aside, and that nobody carries on.

The hints are read first and their executions afterwards, wherever they are: what has ended in between is no
finding.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from django_durable.clock import read_now
from django_durable.conf import config
from django_durable.engine.transitions.admission import rooms_of
from django_durable.engine.transitions.hint_lease import LEVELS
from django_durable.models import DispatchHint, QueueLimit
from django_durable.operators.doctor.finding import ERROR, MOST_COUNTED, WARNING, Finding, Seen
from django_durable.operators.doctor.scene import PAGE, Scene
from django_durable.operators.stats import live_hints, live_queues

__all__ = ["lapsed_leases", "overdue_work", "parked_hints"]

OVERDUE = timedelta(seconds=60)
"""How long work may be due on a queue that nobody serves."""
STARVED = timedelta(minutes=15)
"""The same on a queue where work is being done: a burst takes a while, and that is no fault."""
QUEUES_NAMED = 20
WATCHED, WATCHED_SECONDS = 20, 1.0
"""How many late hints of a queue are watched, and for how long, before it counts as not served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinted:
    """What a finding needs of a hint."""

    pk: UUID
    execution_id: UUID
    plane: str
    queue: str
    due_at: datetime


def at_their_limit(spine: str) -> set[str]:
    """Queues that admit nothing now because their limits say so, or an operator: what waits there is not stuck."""
    limited = QueueLimit.objects.using(spine).values_list("name", flat=True)
    return {room.name for room in rooms_of(spine, limited) if room.closed or room.starts == 0}


def overdue_work(scene: Scene) -> Iterator[Finding]:
    """Ready work that nobody takes, overdue timers among it."""
    now = read_now(scene.spine)
    late = list(of_unfinished(scene, due_before(scene.spine, now - OVERDUE, Q(token=None))))
    full = at_their_limit(scene.spine)
    late = [one for one in late if one.queue not in full]
    busy = queues_worked_on(scene.spine, late) if late else set()
    stuck = [one for one in late if (one.plane, one.queue) not in busy or one.due_at < now - STARVED]
    for label, hints in by_plane(scene, stuck):
        queues = sorted({one.queue for one in hints})[:QUEUES_NAMED]
        age = int((now - hints[0].due_at).total_seconds())
        seen = seen_of(hints)
        yield Finding(
            code="overdue",
            severity=WARNING,
            count=seen.count,
            plane=label,
            executions=seen.executions,
            explanation=_(
                "%(count)d execution(s) are due and nobody takes them, for up to %(age)d s, on: %(queues)s."
            )
            % {"count": seen.count, "age": age, "queues": ", ".join(queues)},
            advice=_(
                "Run a worker that serves these queues and knows these workflows; if one does, it needs more"
                " concurrency."
            ),
            details={"queues": queues, "oldest_seconds": age},
        )


def queues_worked_on(spine: str, late: list[Hinted]) -> set[tuple[str, str]]:
    """The queues, each with its plane, where somebody works, or takes some of the late work while we watch.

    Between two short turns of a worker there is no lease to be seen, so one look would be wrong now and then.
    """
    oldest: dict[tuple[str, str], list[UUID]] = {}
    for one in late:
        watched = oldest.setdefault((one.plane, one.queue), [])
        if len(watched) < WATCHED:
            watched.append(one.pk)
    busy: set[tuple[str, str]] = set()
    until = time.monotonic() + WATCHED_SECONDS
    while len(busy) < len(oldest):
        for plane, queue in oldest.keys() - busy:
            if is_leased(spine, plane, queue) or some_taken(spine, oldest[plane, queue]):
                busy.add((plane, queue))
        if time.monotonic() >= until:
            break
        time.sleep(WATCHED_SECONDS / 20)
    return busy


def some_taken(spine: str, watched: list[UUID]) -> bool:
    late = live_hints(spine).filter(pk__in=watched, token=None, due_at__lt=read_now(spine) - OVERDUE)
    return late.count() < len(watched)


def is_leased(spine: str, plane: str, queue: str) -> bool:
    ahead = live_hints(spine).filter(plane=plane, queue=queue, token__isnull=False, due_at__gt=read_now(spine))
    return ahead.exists()


def lapsed_leases(scene: Scene) -> Iterator[Finding]:
    """Claims of dead workers that nobody has taken over, a whole lease after they ended."""
    until = read_now(scene.spine) - timedelta(seconds=config().lease_seconds)
    lapsed = of_unfinished(scene, due_before(scene.spine, until, Q(token__isnull=False)))
    for label, hints in by_plane(scene, lapsed):
        seen = seen_of(hints)
        yield Finding(
            code="lapsed-lease",
            severity=WARNING,
            count=seen.count,
            plane=label,
            executions=seen.executions,
            explanation=_("%(count)d execution(s) belong to a worker that is gone, and nobody has taken them over.")
            % {"count": seen.count},
            advice=_(
                "Run a worker that serves their queues: it takes them over at once, nothing is repeated that is"
                " recorded."
            ),
        )


def parked_hints(scene: Scene) -> Iterator[Finding]:
    """Work set aside after too many failures to reach it; also where its plane's name leads nowhere."""
    parked = DispatchHint.objects.using(scene.spine).filter(state=DispatchHint.State.PARKED)
    found = of_unfinished(scene, in_order_of_due(parked), unknown_planes=True)
    for label, hints in by_plane(scene, found):
        seen = seen_of(hints)
        yield Finding(
            code="parked",
            severity=ERROR,
            count=seen.count,
            plane=label,
            executions=seen.executions,
            explanation=_("%(count)d dispatch hint(s) are parked: their plane could not be resolved too many times.")
            % {"count": seen.count},
            advice=_("Mend the plane or the tenant's placement, then requeue the hints."),
        )


# -- reading hints -------------------------------------------------------------------------------------------


def due_before(spine: str, moment: datetime, condition: Q) -> Iterator[list[Hinted]]:
    """Pages of live hints that were due before a moment: one range of the index a queue and level."""
    for queue in live_queues(spine):
        for level in LEVELS:
            due = live_hints(spine).filter(condition, queue=queue, priority=level, due_at__lt=moment)
            yield from in_order_of_due(due)


def in_order_of_due(hints: QuerySet[DispatchHint]) -> Iterator[list[Hinted]]:
    """The hints a page at a time, the oldest first."""
    names = ("pk", "execution_id", "plane", "queue", "due_at")
    rest = hints
    while rows := list(rest.order_by("due_at", "pk").values(*names)[:PAGE]):
        yield [Hinted(**row) for row in rows]
        if len(rows) < PAGE:
            return
        last = rows[-1]
        rest = hints.filter(due_at__gte=last["due_at"]).exclude(due_at=last["due_at"], pk__lte=last["pk"])


def of_unfinished(scene: Scene, pages: Iterable[list[Hinted]], *, unknown_planes: bool = False) -> Iterator[Hinted]:
    """Those whose execution has not ended, at most MOST_COUNTED; the others are a finding of their own."""
    found = 0
    for page in pages:
        alive: set[UUID] = set()
        for plane in {one.plane for one in page}:
            mine = [one.execution_id for one in page if one.plane == plane]
            if plane in scene.names:
                alive |= scene.unfinished(plane, mine) or set()
            elif unknown_planes:
                alive |= set(mine)
        for one in page:
            if one.execution_id in alive:
                yield one
                found += 1
                if found == MOST_COUNTED:
                    return


def by_plane(scene: Scene, hints: Iterable[Hinted]) -> Iterator[tuple[str, list[Hinted]]]:
    """The hints of each plane, by the name that people call it, the oldest first."""
    ordered = sorted(hints, key=attrgetter("plane", "due_at", "pk"))
    for plane, mine in groupby(ordered, key=attrgetter("plane")):
        yield plane or scene.own.label, list(mine)


def seen_of(hints: Sequence[Hinted]) -> Seen:
    return Seen.of([one.execution_id for one in hints])
