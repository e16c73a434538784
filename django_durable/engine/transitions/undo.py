"""Undo: from the decision how a run is to end, over its undo steps, to that end.

Undo steps begin when no turn holds the execution. A running one is *asked*: the decision is stored, the fence
refuses every further record of forward work, and the turn hands over when it notices; if its worker died, the
take-over does. Everything else begins at once. ``ending_as`` is the decision; ``failed_positions`` keeps the
error that the run will end with, and both stay after the end: they say that its undo has begun.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connections, transaction

from django_durable.clock import sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.journal import fence
from django_durable.engine.standing import standing_intent
from django_durable.engine.telling import tell
from django_durable.engine.transitions.family import close_children, hold, tell_parent
from django_durable.engine.transitions.leave import (
    ENDED,
    FREE,
    Pages,
    cancel_pending,
    dead_letter,
    ended_columns,
    run_fenced,
    update_execution,
)
from django_durable.engine.transitions.singleton import free_slot
from django_durable.models import Execution
from django_durable.models.execution import RETRYABLE
from django_durable.signals import execution_finished
from django_durable.sql import Sql, build, execute, fetch, field_of, run_guarded, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run is to end once its undo steps are through: with which error, brought about by which positions."""

    status: str
    error: str | None = None
    ended_by: Mapping[str, Any] = field(default_factory=dict)

    def columns(self) -> dict[str, Any]:
        """The decision as it is stored."""
        stored = dict(self.ended_by) if self.error is None else {**self.ended_by, "error": self.error}
        return {"ending_as": self.status, "failed_positions": json.dumps(stored) if stored else ""}


# A deadline and a pause no longer count once it is decided how the run ends.
_DECIDED = {"deadline": None, "pause_requested_at": None}
# What undo steps begin with, crash recoveries of their own among it.
_BEGUN = {
    **FREE,
    **_DECIDED,
    "status": "compensating",
    "in_line": False,
    "wake_at": None,
    "awaiting": "",
    "blocked_by": "",
    "encoded_output": None,
    "encoded_error": None,
    "recoveries": 0,
    "finished_at": None,
}


def ask_undo(using: str, row: Mapping[str, Any], ending: Ending, more: Mapping[str, Any] | None = None) -> None:
    """Ask the turn that holds this locked execution to stop for its undo steps; nothing forward commits any more."""
    _write(using, row, {**_DECIDED, **ending.columns(), **(more or {})})
    SpineWork(using).revoke(row["id"]).run()
    close_children(using, [row["id"]])


def begin_undo(using: str, row: Mapping[str, Any], ending: Ending, more: Mapping[str, Any] | None = None) -> None:
    """Begin the undo steps of this locked execution, which no turn holds."""
    begun = {**_BEGUN, **ending.columns(), "revision": row["revision"] + 1, **(more or {})}
    _write(using, row, begun)
    execute(using, cancel_pending(using, row["id"], but_undo=True))
    intent = standing_intent(using, {**row, **begun})
    assert intent is not None, "a compensating execution stands for an intent"
    SpineWork(using).delete_all(row["id"]).publish(intent).run()
    close_children(using, [row["id"]])


def begin_after_failure(claim: Claimed, pages: Pages, ending: Ending, *, family: bool = False) -> bool:
    """End this turn's forward work with an error, and begin the undo steps. ``False``: refused.

    ``family``: something that the run has started elsewhere may still be under way; it ends here.
    """
    changes = {**_BEGUN, **ending.columns(), "revision": Sql("e.revision + 1")}
    consequences = [*pages.consequences(claim), cancel_pending(claim.using, claim.id, but_undo=True)]
    work = SpineWork(claim.using)
    if not family:
        work.acknowledge(claim.hint_id, claim.token).publish(claim.intent())
        return run_fenced(claim, changes, consequences, work)
    work.delete_all(claim.id).publish(claim.intent())  # whoever runs a step of it finds its lease gone

    def attempt() -> bool:
        with transaction.atomic(using=claim.using):
            held = run_fenced(claim, changes, consequences, work)
            if held:
                close_children(claim.using, [claim.id])
            return held

    return repeated(claim.using, attempt)


def begin_asked(claim: Claimed) -> bool:
    """This turn has stopped as it was asked to: the undo steps begin. ``False``: not asked, or overtaken."""
    where = build("{fence} AND e.ending_as <> '' AND e.status = 'running'", fence=fence(claim, undo=True))
    changes = {**_BEGUN, "revision": Sql("e.revision + 1")}
    guard = update_execution(claim.using, changes, where)
    work = SpineWork(claim.using).acknowledge(claim.hint_id, claim.token).publish(claim.intent())
    consequences = [cancel_pending(claim.using, claim.id, but_undo=True), *work.consequences()]
    held = bool(repeated(claim.using, lambda: run_guarded(claim.using, guard, consequences)))
    if held:
        work.finish()
    return held


def end_undo(claim: Claimed) -> bool:
    """All undo steps have an outcome: end as it was decided. ``False``: refused."""
    using, connection = claim.using, connections[claim.using]
    status, stored = (
        Execution._base_manager.using(using).values_list("ending_as", "failed_positions").get(pk=claim.id)
    )
    error = json.loads(stored or "{}").get("error")
    changes = {
        **ENDED,
        **ended_columns(),
        "status": status,
        "encoded_output": None,
        "encoded_error": error,
        "finished_at": sql_now(connection),
    }
    consequences = [cancel_pending(using, claim.id)]
    if status in RETRYABLE:
        consequences.append(dead_letter(using, claim.row, status=status, error=error))

    def attempt() -> bool:
        with transaction.atomic(using=using):
            parent = hold(using, claim.row["parent_id"])
            held = run_fenced(claim, changes, consequences, SpineWork(using).delete_all(claim.id))
            if held:
                tell_parent(using, parent, claim.row, status=status, error=error)
                free_slot(using, claim.row)
            return held

    held = repeated(using, attempt)
    if held:
        tell(using, execution_finished, claim.id)
    return held


def _write(using: str, row: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    here = build("e.id = {id}", id=value(connections[using], field_of(Execution, "id"), row["id"]))
    fetch(using, update_execution(using, changes, here))
