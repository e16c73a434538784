"""Hints that lead nowhere: their execution has ended or is gone, or nobody knows their plane."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from django_durable.models import DispatchHint, Execution
from django_durable.models.execution import ACTIVE
from django_durable.operators.doctor.finding import ERROR, MOST_COUNTED, WARNING, Finding, Seen, look_at
from django_durable.operators.doctor.scene import PAGE, Scene

__all__ = ["hints_adrift"]

SETTLING_SECONDS = 5.0
"""How long a hint may outlive its execution: the plane commits an end first, the spine is told afterwards."""

Adrift = dict[UUID, UUID]
"""The hints of one plane, each with its execution."""


def hints_adrift(scene: Scene) -> Iterator[Finding]:
    """An end deletes its hints, and every plane has a name: so something else changed rows."""
    unfinished = Execution.objects.using(scene.spine).filter(pk=OuterRef("execution_id"), status__in=ACTIVE)
    own = DispatchHint.objects.using(scene.spine).filter(~Exists(unfinished), plane="")
    if seen := look_at(own.order_by("due_at"), "execution_id"):
        yield dangling(scene.own.label, seen)
    if len(scene.names) > 1:
        yield from adrift_of_planes(scene)


def adrift_of_planes(scene: Scene) -> Iterator[Finding]:
    """All hints of planes are read once, a page at a time; each page is compared with its planes."""
    suspects: dict[str, Adrift] = defaultdict(dict)
    lost: dict[str, list[UUID]] = defaultdict(list)
    for page in pages(scene.spine):
        for plane, hints in page.items():
            if plane not in scene.names:
                lost[plane] += not_parked(scene.spine, hints).values()
            elif len(suspects[plane]) < MOST_COUNTED:
                suspects[plane].update(without_execution(scene, plane, hints))
    for plane, hints in sorted(settled(scene, suspects).items()):
        yield dangling(plane, Seen.of(list(hints.values())))
    for plane, executions in sorted((plane, found) for plane, found in lost.items() if found):
        yield unknown(plane, Seen.of(executions))


def pages(spine: str) -> Iterator[dict[str, Adrift]]:
    """The hints of planes, by plane."""
    rows = DispatchHint.objects.using(spine).exclude(plane="")
    after: UUID | None = None
    while True:
        rest = rows if after is None else rows.filter(pk__gt=after)
        page = list(rest.order_by("pk").values_list("pk", "execution_id", "plane")[:PAGE])
        found: dict[str, Adrift] = defaultdict(dict)
        for pk, execution_id, plane in page:
            found[plane][pk] = execution_id
        yield found
        if len(page) < PAGE:
            return
        after = page[-1][0]


def without_execution(scene: Scene, plane: str, hints: Adrift) -> Adrift:
    alive = scene.unfinished(plane, list(hints.values()))
    if alive is None:
        return {}
    return {pk: execution_id for pk, execution_id in hints.items() if execution_id not in alive}


def settled(scene: Scene, suspects: dict[str, Adrift]) -> dict[str, Adrift]:
    """Those that are still there after a while."""
    suspects = {plane: hints for plane, hints in suspects.items() if hints}
    until = time.monotonic() + SETTLING_SECONDS
    while suspects:
        for plane, hints in list(suspects.items()):
            left = without_execution(scene, plane, still_there(scene.spine, hints))
            if left:
                suspects[plane] = left
            else:
                del suspects[plane]
        if time.monotonic() >= until:
            break
        time.sleep(SETTLING_SECONDS / 50)
    return suspects


def still_there(spine: str, hints: Adrift) -> Adrift:
    keys = list(hints)
    left: Adrift = {}
    for begin in range(0, len(keys), PAGE):
        rows = DispatchHint.objects.using(spine).filter(pk__in=keys[begin : begin + PAGE])
        left.update(rows.values_list("pk", "execution_id"))
    return left


def not_parked(spine: str, hints: Adrift) -> Adrift:
    """Those that are no finding of their own already."""
    rows = DispatchHint.objects.using(spine).filter(pk__in=list(hints)).exclude(state=DispatchHint.State.PARKED)
    return dict(rows.values_list("pk", "execution_id"))


def dangling(label: str, seen: Seen) -> Finding:
    return Finding(
        code="dangling-hint",
        severity=WARNING,
        count=seen.count,
        plane=label,
        executions=seen.executions,
        explanation=_("%(count)d dispatch hint(s) belong to executions that have ended or do not exist.")
        % {"count": seen.count},
        advice=_(
            "A sweep drops them within minutes. If they stay, check that something ticks; ask who deleted the rows."
        ),
    )


def unknown(plane: str, seen: Seen) -> Finding:
    return Finding(
        code="unknown-plane",
        severity=ERROR,
        count=seen.count,
        plane=plane,
        executions=seen.executions,
        explanation=_("%(count)d dispatch hint(s) are for a data plane that is not registered.")
        % {"count": seen.count},
        advice=_("Register it with `manage.py durable planes add` under the name that it had."),
    )
