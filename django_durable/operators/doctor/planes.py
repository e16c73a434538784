"""Faults of the planes themselves: away, lagging, closed too early, and tenants that are nowhere or half-way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from django_durable.models import Execution, TenantPlacement
from django_durable.models.execution import ACTIVE
from django_durable.operators.doctor.finding import ERROR, LISTED, MOST_COUNTED, WARNING, Finding, Seen, look_at
from django_durable.operators.doctor.scene import PAGE, Scene
from django_durable.operators.stats import count_up_to
from django_durable.planes.places import Away, Place, ask

__all__ = [
    "closed_with_work",
    "lagging_migrations",
    "misplaced_tenants",
    "unfinished_moves",
    "unreachable_plane",
]


def unreachable_plane(away: Away) -> Finding:
    """A plane that gave no answer, at the first question or at a later one."""
    return Finding(
        code="plane-unreachable",
        severity=ERROR,
        count=1,
        plane=away.place.label,
        explanation=_("Data plane %(name)s gives no answer: %(reason)s.")
        % {"name": away.place.label, "reason": away.reason},
        advice=_("Its work waits, uncounted, and goes on by itself once the database can be reached."),
        details={"database": away.place.alias},
    )


def lagging_migrations(scene: Scene) -> Iterator[Finding]:
    """Planes without this code's migrations: nothing is claimed there, and nothing more is looked at."""
    for place, missing in scene.lagging:
        yield Finding(
            code="lagging-migrations",
            severity=ERROR,
            count=len(missing),
            plane=place.label,
            explanation=_("Database %(alias)r lacks %(count)d migration(s); nothing is claimed from it.")
            % {"alias": place.alias, "count": len(missing)},
            advice=_("Run `manage.py durable planes migrate %(name)s`.") % {"name": place.label},
            details={"migrations": missing[:LISTED]},
        )


def closed_with_work(scene: Scene) -> Iterator[Finding]:
    """Closed planes that somebody still needs. One that cannot be reached is a fault for its tenants only."""
    answers = ask(scene.closed, left_on)
    for place, seen in [*answers.found, *((one.place, Seen((), 0)) for one in answers.away)]:
        placed = TenantPlacement.objects.using(scene.spine).filter(plane=place.plane)
        tenants = count_up_to(placed, MOST_COUNTED)
        if seen or tenants:
            yield Finding(
                code="closed-plane",
                severity=WARNING,
                count=seen.count or tenants,
                plane=place.label,
                executions=seen.executions,
                explanation=_("A closed plane has %(count)d unfinished execution(s) and %(tenants)d tenant(s).")
                % {"count": seen.count, "tenants": tenants},
                advice=_("Open it again with `manage.py durable planes add`, or move its tenants."),
                details={"tenants": tenants},
            )


def left_on(place: Place) -> Seen:
    return look_at(Execution.objects.using(place.alias).filter(status__in=ACTIVE).order_by("pk"), "pk")


def unfinished_moves(scene: Scene) -> Iterator[Finding]:
    """Tenants on their way: nothing of theirs runs or is accepted until the move is finished."""
    moving = TenantPlacement.objects.using(scene.spine).exclude(moving_to="").order_by("pk")
    rows = list(moving.values("tenant", "moving_to", "moved_from")[: LISTED + 1])
    if rows:
        yield Finding(
            code="unfinished-move",
            severity=WARNING,
            count=len(rows) if len(rows) <= LISTED else count_up_to(moving, MOST_COUNTED),
            plane=scene.own.label,
            explanation=_("Tenants are on their way to another plane, and wait: %(tenants)s.")
            % {"tenants": ", ".join(row["tenant"] for row in rows[:LISTED])},
            advice=_(
                "If nobody is moving them now, run `manage.py durable planes move` again: it finishes the move."
            ),
            details={
                "tenants": [
                    {"tenant": row["tenant"], "from": row["moved_from"], "to": row["moving_to"]}
                    for row in rows[:LISTED]
                ]
            },
        )


def misplaced_tenants(scene: Scene) -> Iterator[Finding]:
    """Tenants with unfinished work on a plane where they are not placed: new starts go elsewhere, or nowhere."""
    for place, tenants in scene.each(lambda one: misplaced_on(scene.spine, one), scene.planes):
        if tenants:
            yield Finding(
                code="misplaced-tenant",
                severity=WARNING,
                count=len(tenants),
                plane=place.label,
                explanation=_("Tenants have unfinished executions here and are not placed here: %(tenants)s.")
                % {"tenants": ", ".join(tenants[:LISTED])},
                advice=_(
                    "What is there goes on. Place them here again (`manage.py durable planes place`), then move them"
                    " with `planes move` if they belong elsewhere."
                ),
                details={"tenants": tenants[:LISTED]},
            )


def misplaced_on(spine: str, place: Place) -> list[str]:
    """Those tenants. A move may end between two looks: what it took along is gone at the last one."""
    working: Any = Execution.objects.using(place.alias).filter(status__in=ACTIVE).exclude(tenant="")
    tenants = sorted(working.values_list("tenant", flat=True).distinct())
    strange: list[str] = []
    for begin in range(0, len(tenants), PAGE):
        page = tenants[begin : begin + PAGE]
        rows = TenantPlacement.objects.using(spine).filter(pk__in=page)
        placed = {row.tenant for row in rows if place.plane in (row.plane, row.moved_from, row.moving_to)}
        strange += [tenant for tenant in page if tenant not in placed]
    return sorted(working.filter(tenant__in=strange).values_list("tenant", flat=True).distinct()) if strange else []
