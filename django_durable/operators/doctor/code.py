"""Code that is not what live executions were started with."""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import gettext as _

from django_durable.authoring.registry import all_workflows
from django_durable.models import Execution
from django_durable.operators.doctor.finding import INFO, Finding, look_at

__all__ = ["changed_sources"]


def changed_sources(using: str) -> Finding | None:
    """Live executions whose version has another source here than at their start; blocked ones are found already."""
    changed = Q(pk__in=[])
    for workflow in all_workflows():
        same_name = Q(workflow=workflow.name, version=workflow.version)
        changed |= same_name & ~Q(source_digest__in=["", workflow.source_digest])
    rows = Execution.objects.using(using).active().exclude(status="blocked").filter(changed)
    seen = look_at(rows.order_by("pk"), "pk")
    if not seen:
        return None
    return Finding(
        code="changed-source",
        severity=INFO,
        count=seen.count,
        executions=seen.executions,
        explanation=_("%(count)d execution(s) were started with another source of their workflow's version.")
        % {"count": seen.count},
        advice=_(
            "They go on where their history replays: `manage.py durable check-replay` tells. Those of a pinned"
            " workflow will be blocked, until `resume ID --accept-code` or `cancel ID`."
        ),
    )
