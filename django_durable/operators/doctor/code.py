"""Code that is not what live executions were started with."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q
from django.utils.translation import gettext as _

from django_durable.authoring.registry import all_workflows
from django_durable.models import Execution
from django_durable.operators.doctor.finding import INFO, Finding, Seen, look_at
from django_durable.operators.doctor.scene import Scene
from django_durable.planes.places import Place

__all__ = ["changed_sources"]


def changed_sources(scene: Scene) -> Iterator[Finding]:
    """Live executions whose version has another source here than at their start; blocked ones are found already."""
    for place, seen in scene.each(changed_on):
        if seen:
            yield Finding(
                code="changed-source",
                severity=INFO,
                count=seen.count,
                plane=place.label,
                executions=seen.executions,
                explanation=_("%(count)d execution(s) were started with another source of their workflow's version.")
                % {"count": seen.count},
                advice=_(
                    "They go on where their history replays: `manage.py durable check-replay` tells. Those of a"
                    " pinned workflow will be blocked, until `resume ID --accept-code` or `cancel ID`."
                ),
            )


def changed_on(place: Place) -> Seen:
    changed = Q(pk__in=[])
    for workflow in all_workflows():
        same_name = Q(workflow=workflow.name, version=workflow.version)
        changed |= same_name & ~Q(source_digest__in=["", workflow.source_digest])
    rows = Execution.objects.using(place.alias).active().exclude(status="blocked").filter(changed)
    return look_at(rows.order_by("pk"), "pk")
