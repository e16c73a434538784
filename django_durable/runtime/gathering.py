"""The sweep of gathered events: what is due starts its run. No user code."""

from __future__ import annotations

from django_durable.authoring.gathering import start_group
from django_durable.authoring.registry import all_workflows
from django_durable.clock import read_now
from django_durable.models import GatheredEvent

GROUPS = 100
"""Groups that one pass looks at; each is started, or not due any more, when it was."""


def start_gathered(plane: str) -> int:
    """Runs are started of debounced events that have been quiet, and of batches whose window is over; how many.

    Those of workflows that this process does not know are left to one that does.
    """
    known = sorted({workflow.name for workflow in all_workflows()})
    due = GatheredEvent.objects.using(plane).filter(due_at__lte=read_now(plane), workflow__in=known)
    marks = list(dict.fromkeys(due.order_by("due_at", "pk").values_list("mark", flat=True)[: GROUPS * 10]))
    return sum(start_group(plane, mark) for mark in marks[:GROUPS])
