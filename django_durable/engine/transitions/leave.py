"""Every way in which a turn gives up its execution without ending it: one fenced batch each. Ends are in ``ending``.

The batch changes the execution's row under the fence and, if that held, appends the checkpoints in hand,
acknowledges the hint that was leased and publishes the next intent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections

from django_durable.clock import sql_after, sql_now
from django_durable.dispatch.hints import Intent
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.journal import EXECUTION, fence, insert_within, update_within
from django_durable.engine.telling import tell
from django_durable.models import Execution
from django_durable.models.checkpoint import UNDO, WHOLE, Checkpoint
from django_durable.models.dead_letter import DeadLetter
from django_durable.signals import execution_waiting
from django_durable.sql import Sql, assignments, build, field_of, insert_row, is_postgres, run_guarded, value

FREE = {"lease_token": None, "worker": "", "claimed_at": None}
# An ending keeps who held it last, as evidence.
ENDED = {"lease_token": None}
# What a run is that nobody holds and that may go on at once: with its undo steps where it is to end.
READY = Sql("CASE WHEN e.ending_as <> '' THEN 'compensating' ELSE 'pending' END")


@dataclass(slots=True)
class Pages:
    """Checkpoints to be written with a transition: new rows, and a change of the pending one at a position."""

    rows: Sequence[Mapping[str, Any]] = ()
    position: int | None = None
    changes: Mapping[str, Any] | None = None
    item: int = WHOLE

    def consequences(self, claim: Claimed) -> list[Sql]:
        """The statements that write them."""
        written = [insert_within(claim, row) for row in self.rows]
        if self.position is not None and self.changes is not None:
            written.append(update_within(claim, self.position, self.changes, item=self.item))
        return written


def suspend(claim: Claimed, pages: Pages, *, wake_at: datetime | None, awaiting: str = "") -> bool:
    """Wait without a worker: until ``wake_at``, or for what ``awaiting`` lists. ``False``: refused.

    A pause that was asked for in the meantime makes it ``paused`` instead; a resume replays up to here. An undo step
    that waits for its next attempt stays ``compensating`` where the run is to end.
    """
    due_at = wake_at or claim.row["deadline"]
    changes = {
        **FREE,
        "status": Sql(
            "CASE WHEN e.ending_as <> '' THEN 'compensating' WHEN e.pause_requested_at IS NULL THEN 'waiting'"
            " ELSE 'paused' END"
        ),
        "wake_at": _unless_paused(claim, wake_at),
        "awaiting": awaiting,
        "pause_requested_at": None,
        "revision": Sql("e.revision + 1"),
    }
    held = _leave(claim, changes, pages, claim.intent(due_at=due_at) if due_at is not None else None)
    if held:
        tell(claim.using, execution_waiting, claim.id)
    return held


def pause_here(claim: Claimed, pages: Pages) -> bool:
    """Stop at this position until an operator's ``resume``: a pause that was asked for, or a breakpoint."""
    changes = {
        **FREE,
        "status": "paused",
        "wake_at": None,
        "awaiting": "",
        "pause_requested_at": None,
        "revision": Sql("e.revision + 1"),
    }
    deadline = claim.row["deadline"]
    return _leave(claim, changes, pages, claim.intent(due_at=deadline) if deadline is not None else None)


def release(claim: Claimed, pages: Pages, *, delay: float = 0.0) -> bool:
    """Hand the execution back, due after ``delay`` seconds. Nothing is consumed; the same hint serves again."""
    changes = {**FREE, "status": READY}
    work = SpineWork(claim.using)
    work.put_back(claim.hint_id, claim.token, sql_after(connections[work.spine], delay))
    return run_fenced(claim, changes, pages.consequences(claim), work)


def block(claim: Claimed, *, error: str, code: str) -> bool:
    """Stop visibly: the code here cannot go on with this history. Other code looks again."""
    changes = {
        **FREE,
        "status": "blocked",
        "wake_at": None,
        "awaiting": "",
        "encoded_error": error,
        "blocked_by": code,
        "revision": Sql("e.revision + 1"),
    }
    # The buffer is dropped: nothing of a turn that does not match its history is recorded.
    return _leave(claim, changes, Pages(), claim.intent(state=1, avoid=code))


def merge_tags(claim: Claimed, pages: Pages, tags: Mapping[str, Any]) -> bool:
    """Merge tags into the execution's row and write the checkpoints in hand; the turn keeps the execution."""
    connection = connections[claim.using]
    bound = value(connection, field_of(Execution, "tags"), dict(tags))
    merged = "e.tags || {tags}" if is_postgres(connection) else "json_patch(e.tags, {tags})"
    return run_fenced(claim, {"tags": build(merged, tags=bound)}, pages.consequences(claim))


def ended_columns() -> dict[str, Any]:
    """What every ending resets."""
    return {
        "wake_at": None,
        "awaiting": "",
        "pause_requested_at": None,
        "blocked_by": "",
        "revision": Sql("e.revision + 1"),
    }


def dead_letter(using: str, row: Mapping[str, Any], *, status: str, error: str | None) -> Sql:
    """The letter of the execution's next generation, as a consequence."""
    connection = connections[using]
    table = DeadLetter._meta.db_table
    generation = build(
        f"(SELECT COALESCE(MAX(d.generation), 0) + 1 FROM {table} d WHERE d.execution_id = {{id}})",
        id=value(connection, field_of(Execution, "id"), row["id"]),
    )
    values = {
        "execution_id": row["id"],
        "generation": generation,
        "tenant": row["tenant"],
        "workflow": row["workflow"],
        "version": row["version"],
        "correlation_id": row["correlation_id"],
        "status": status,
        "encoded_error": error,
        "failures": "[]",
        "recoveries": row["recoveries"],
        "created_at": sql_now(connection),
        "retried_by": "",
    }
    return insert_row(connection, DeadLetter, values, on_conflict="ON CONFLICT DO NOTHING")


def cancel_pending(using: str, execution_id: Any, *, but_undo: bool = False) -> Sql:
    """Close what an execution was in the middle of when it ended; ``but_undo``: when its forward work did."""
    connection = connections[using]
    forward = f" AND item <> {UNDO}" if but_undo else ""
    return build(
        f"UPDATE {Checkpoint._meta.db_table} SET {{sets}} WHERE execution_id = {{id}} AND status = 'pending'"
        f"{forward} AND {{guard}}",
        sets=assignments(connection, Checkpoint, {"status": "cancelled", "finished_at": sql_now(connection)}),
        id=value(connection, field_of(Execution, "id"), execution_id),
    )


def update_execution(using: str, changes: Mapping[str, Any], where: Sql, returning: str = "id") -> Sql:
    """The guard of a batch that changes one execution's row."""
    return build(
        f"UPDATE {EXECUTION} AS e SET {{changes}} WHERE {{where}} RETURNING {returning}",
        changes=assignments(connections[using], Execution, changes),
        where=where,
    )


def _unless_paused(claim: Claimed, moment: datetime | None) -> Sql | None:
    if moment is None:
        return None
    bound = value(connections[claim.using], field_of(Execution, "wake_at"), moment)
    return build("CASE WHEN e.pause_requested_at IS NULL THEN {bound} END", bound=bound)


def _leave(claim: Claimed, changes: Mapping[str, Any], pages: Pages, intent: Intent | None) -> bool:
    work = SpineWork(claim.using).acknowledge(claim.hint_id, claim.token)
    if intent is not None:
        work.publish(intent)
    return run_fenced(claim, changes, pages.consequences(claim), work)


def run_fenced(
    claim: Claimed, changes: Mapping[str, Any], consequences: Sequence[Sql], work: SpineWork | None = None
) -> bool:
    """Change the execution's row under the fence, with what follows from it; ``False``: the fence did not hold."""
    guard = update_execution(claim.using, changes, fence(claim))
    told = work.consequences() if work is not None else []
    held = bool(repeated(claim.using, lambda: run_guarded(claim.using, guard, [*consequences, *told])))
    if held and work is not None:
        work.finish()
    return held
