"""The liveness guarantee: every execution that has not ended has a lease, a due time, or an awaited message
or operator with a sweep behind it.

Where hints and executions share a database, one query lists what violates it. Where they do not, the plane is
read a page at a time and compared with the spine, in an order that no work in progress can deceive: the
executions, the outbox, the hints, and then the executions again. A revision grows with every intent, so a row that
has kept its revision stood still while the others were read; and an intent leaves the outbox after its hint is
there. What has not stood still is no finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from django_durable.models import DispatchHint, Execution, ExecutionQuerySet, Outbox, SingletonPlace
from django_durable.operators.doctor.finding import ERROR, MOST_COUNTED, Finding, Seen, look_at
from django_durable.operators.doctor.scene import PAGE, Scene
from django_durable.planes.places import Place, place_on
from django_durable.planes.selection import spine_alias

__all__ = ["liveness_violations", "lost_executions", "running_without_hint"]

NEEDS_HINT = ("pending", "running", "compensating", "blocked")
CLAIMABLE = ("running", "compensating")
AWAITS_NOTHING = ("", "[]")

Intent = tuple[UUID, int, int]
"""An execution with the revision and the epoch of what it wants."""


def liveness_violations(using: str) -> list[UUID]:
    """Every execution on this database that nothing will ever carry on; empty on a healthy system.

    A hint counts if it is of the execution's own revision and epoch (an older one is dropped unseen), whatever
    its state: a blocked one is looked at again, a parked one awaits an operator. A paused execution awaits one too,
    and so does a tenant on its way to another plane.
    """
    place = place_on(using)
    if place.is_spine:
        return list(violations(using).values_list("pk", flat=True))
    return sorted([*lost_apart(place, held=False), *lost_apart(place, held=True)])


def violations(using: str) -> Any:
    """Those executions on the spine's own database, oldest first: one query."""
    same = {"execution_id": OuterRef("pk"), "revision": OuterRef("revision"), "epoch": OuterRef("epoch"), "kind": 0}
    hints = DispatchHint.objects.using(using).filter(**same)
    on_its_way = Outbox.objects.using(using).filter(**same)
    timed = Q(wake_at__isnull=False) | Q(deadline__isnull=False)
    needs_hint = Q(status__in=NEEDS_HINT) | Q(status="waiting") & timed
    waits_for_nothing = Q(status="waiting", awaiting__in=AWAITS_NOTHING) & ~timed
    rows: ExecutionQuerySet = Execution.objects.using(using).filter(
        status__in=(*NEEDS_HINT, "waiting"), moving=False, in_line=False
    )
    return rows.filter(waits_for_nothing | needs_hint & ~Exists(hints) & ~Exists(on_its_way)).order_by("pk")


def admitted(using: str) -> Q:
    """All but those that wait in the line of their singleton, where they have a place that *singletons* looks at."""
    places = SingletonPlace.objects.using(using).filter(execution_id=OuterRef("pk"))
    return Q(in_line=False) | Q(~Exists(places))


def lost_apart(place: Place, *, held: bool) -> Iterator[UUID]:
    """The same on a plane of its own: those under a claim, or the others."""
    found = 0
    for status in CLAIMABLE if held else (*NEEDS_HINT, "waiting"):
        rows = Execution.objects.using(place.alias).filter(admitted(place.alias), status=status, moving=False)
        rows = rows.filter(lease_token__isnull=False) if held else rows.exclude(under_claim())
        after: UUID | None = None
        while page := list(
            (rows if after is None else rows.filter(pk__gt=after)).order_by("pk")[:PAGE].values(*READ)
        ):
            for intent in stood_still(place, lost_of(place, page)):
                yield intent[0]
                found += 1
                if found == MOST_COUNTED:
                    return
            after = page[-1]["pk"]


READ = ("pk", "status", "revision", "epoch", "awaiting", "wake_at", "deadline")


def lost_of(place: Place, rows: list[dict[str, Any]]) -> list[Intent]:
    """Those of these executions that have no intent on its way, and then no hint."""
    needy: list[Intent] = []
    lost: list[Intent] = []
    for row in rows:
        intent = (row["pk"], row["revision"], row["epoch"])
        if row["status"] != "waiting" or row["wake_at"] is not None or row["deadline"] is not None:
            needy.append(intent)
        elif row["awaiting"] in AWAITS_NOTHING:
            lost.append(intent)
    if needy:
        keys = [intent[0] for intent in needy]
        carried = intents(Outbox.objects.using(place.alias), keys)
        carried |= intents(DispatchHint.objects.using(spine_alias()), keys)
        lost += [intent for intent in needy if intent not in carried]
    return lost


def intents(rows: Any, executions: list[UUID]) -> set[Intent]:
    return set(rows.filter(execution_id__in=executions, kind=0).values_list("execution_id", "revision", "epoch"))


def stood_still(place: Place, suspects: list[Intent]) -> list[Intent]:
    """Those that are lost at a second look too, without having moved since the first."""
    if not suspects:
        return []
    rows = Execution.objects.using(place.alias).filter(
        admitted(place.alias),
        pk__in=[intent[0] for intent in suspects],
        status__in=(*NEEDS_HINT, "waiting"),
        moving=False,
    )
    again = set(lost_of(place, list(rows.values(*READ))))
    return [intent for intent in suspects if intent in again]


def lost_executions(scene: Scene) -> Iterator[Finding]:
    """Nothing will carry them on: no lease, no due time, nothing awaited."""
    for place, seen in scene.each(lambda one: look(one, held=False)):
        if seen:
            yield Finding(
                code="liveness",
                severity=ERROR,
                count=seen.count,
                plane=place.label,
                executions=seen.executions,
                explanation=_(
                    "%(count)d execution(s) have no due time, no lease and await nothing: they would stay for ever."
                )
                % {"count": seen.count},
                advice=_(
                    "Run `manage.py durable tick --rebuild`. It should never be needed without a lost or restored"
                    " table: please report how it came about."
                ),
            )


def running_without_hint(scene: Scene) -> Iterator[Finding]:
    """A claim without the hint that carries its lease: a crash of its worker would go unseen."""
    for place, seen in scene.each(lambda one: look(one, held=True)):
        if seen:
            yield Finding(
                code="running-without-hint",
                severity=ERROR,
                count=seen.count,
                plane=place.label,
                executions=seen.executions,
                explanation=_(
                    "%(count)d execution(s) run under a claim whose dispatch hint is gone: nobody would take over."
                )
                % {"count": seen.count},
                advice=_(
                    "Run `manage.py durable tick --rebuild`: a new hint falls due when the lease would have ended."
                ),
            )


def look(place: Place, *, held: bool) -> Seen:
    if not place.is_spine:
        return Seen.of(list(lost_apart(place, held=held)))
    rows = violations(place.alias)
    return look_at(rows.filter(under_claim()) if held else rows.exclude(under_claim()), "pk")


def under_claim() -> Q:
    return Q(status__in=CLAIMABLE, lease_token__isnull=False)
