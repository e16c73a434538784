"""Unknown work: what is due and whose workflow, or version, this process does not know."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q

from django_durable.authoring.registry import all_workflows, code_digest, find_workflow, served_hashes
from django_durable.clock import read_now
from django_durable.dispatch.definitions import definition_hash
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.unknown import block_unclaimable
from django_durable.errors import UnknownWorkflow
from django_durable.models import DispatchHint, Execution
from django_durable.models.execution import ACTIVE
from django_durable.planes.selection import spine_alias
from django_durable.quiet import report
from django_durable.runtime import stretch
from django_durable.runtime.queues import due_ranges
from django_durable.runtime.stretch import Choice, Page, hints_of, look_through, owners_of

DUE_PAGE = 1_000
"""Due hints that are read at a time."""


def block_unknown(plane: str) -> int:
    """Due work whose definition this process does not know becomes ``blocked``: visible, not failed.

    A worker that knows it claims it from there at its next look. A hint whose hash is only outdated (the secret
    key was rotated away) is stamped anew.
    """
    changed = 0
    for queue, level in due_ranges(spine_alias()):
        for hint_id, execution_id in look_through(
            plane, f"unknown {queue} {level}", _unknown_due(queue, level), _changeable(plane), size=DUE_PAGE
        ):
            try:
                changed += _block_or_stamp(plane, hint_id, execution_id)
            except Exception as error:
                report(error, "execution %s could not be blocked", execution_id)
        if changed >= stretch.BATCH:
            break
    return changed


def _unknown_due(queue: str, level: int) -> Page:
    """Due hints of one queue and level, the oldest first: one range of the index, without any that sleeps."""
    spine = spine_alias()
    due = DispatchHint.objects.using(spine).filter(
        state=DispatchHint.State.LIVE, queue=queue, priority=level, due_at__lte=read_now(spine)
    )
    served = frozenset(served_hashes())

    def page(after: Any, size: int) -> list[tuple[Any, UUID | None]]:
        rows = due
        if after is not None:
            rows = due.filter(due_at__gte=after[0]).exclude(due_at=after[0], pk__lte=after[1])
        found = rows.order_by("due_at", "pk").values_list("due_at", "pk", "definition")[:size]
        # A leased hint that is due has lapsed: its worker is gone, and nobody here can take it over.
        return [((at, key), None if name in served else key) for at, key, name in found]

    return page


def _changeable(plane: str) -> Choice:
    """Of these hints, those whose execution this sweep can change: a page of others must not hide them."""
    served = {workflow.name for workflow in all_workflows()}

    def choose(keys: list[UUID]) -> list[tuple[UUID, UUID]]:
        owners = owners_of(hints_of(plane).filter(kind=DispatchHint.Kind.TURN), keys)
        rows = Execution._base_manager.using(plane).filter(pk__in=list(owners.values()), status__in=ACTIVE)
        overdue = Q(deadline__lte=read_now(plane))
        free = rows.filter(Q(status__in=SOURCES["block"]) | overdue | Q(workflow__in=served))
        fit = set(free.values_list("pk", flat=True))
        return [(key, owners[key]) for key in keys if owners.get(key) in fit]

    return choose


def _block_or_stamp(plane: str, hint_id: UUID, execution_id: UUID) -> int:
    row = Execution._base_manager.using(plane).filter(pk=execution_id).values("workflow", "version").first()
    if row is None:
        return 0
    try:
        find_workflow(row["workflow"], row["version"])
    except UnknownWorkflow as error:
        return int(block_unclaimable(plane, hint_id, execution_id, error, code_digest()))
    fresh = definition_hash(row["workflow"], row["version"])
    return hints_of(plane).filter(pk=hint_id, token=None).update(definition=fresh)
