"""What operators ask for: cancel, pause, resume. Each locks the row, decides, and writes once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from django_durable.clock import sql_now
from django_durable.dispatch.hints import Intent
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.chain import lock_current
from django_durable.engine.contention import repeated
from django_durable.engine.telling import tell
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.family import close_children, hold_current, tell_parent
from django_durable.engine.transitions.leave import (
    ENDED,
    FREE,
    READY,
    cancel_pending,
    ended_columns,
    update_execution,
)
from django_durable.engine.transitions.singleton import enter_again, free_slot
from django_durable.engine.transitions.undo import Ending, ask_undo, begin_undo
from django_durable.engine.undos import has_undos
from django_durable.errors import InvalidTransition
from django_durable.ids import time_ordered_id
from django_durable.models import Checkpoint, Execution, OperatorAction, OperatorNote
from django_durable.planes.selection import spine_alias
from django_durable.signals import execution_finished
from django_durable.sql import Sql, assignments, build, execute, fetch, field_of, insert_row, value


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who asks, and why."""

    actor: str
    reason: str = ""


def cancel(using: str, execution_id: UUID, by: Attribution, *, compensate: bool = True) -> bool:
    """End an execution as ``cancelled`` in any live state, after its undo steps where it has any; whether this won.

    Without undo steps it ends at once, by a take-over: a running turn loses its token here, so nothing of it commits
    afterwards. So it does without ``compensate``, in the middle of its undo steps too: the rest of them never runs.
    """

    def attempt() -> bool:
        with transaction.atomic(using=using):
            parent, now, row = hold_current(using, execution_id)
            if row["status"] not in SOURCES["cancel"] or (compensate and row["ending_as"]):
                return False
            if compensate and _undo_first(using, row):
                note(using, row, now, "cancel", by)
                return True
            ended_at = sql_now(connections[using])
            changes = {
                **ENDED,
                **ended_columns(),
                "status": "cancelled",
                "in_line": False,
                "cancel_requested_at": ended_at,
                "ending_as": "",
                "failed_positions": "",
                "encoded_output": None,
                "encoded_error": None,
                "finished_at": ended_at,
            }
            write_execution(using, row["id"], changes)
            execute(using, cancel_pending(using, row["id"]))
            SpineWork(using).delete_all(row["id"]).run()
            tell_parent(using, parent, row, status="cancelled")
            close_children(using, [row["id"]])
            free_slot(using, row)
            note(using, row, now, "cancel", by)
            tell(using, execution_finished, row["id"])
            return True

    return repeated(using, attempt)


def _undo_first(using: str, row: Mapping[str, Any]) -> bool:
    """Let undo steps run before a locked execution is cancelled; ``False``: there are none."""
    if not has_undos(using, row):
        return False
    asked = {"cancel_requested_at": sql_now(connections[using])}
    (ask_undo if row["status"] == "running" else begin_undo)(using, row, Ending(status="cancelled"), asked)
    return True


def pause(using: str, execution_id: UUID, by: Attribution) -> None:
    """Pause at once, or leave the wish for the running turn's next position. Raises ``InvalidTransition``."""

    def attempt() -> None:
        with transaction.atomic(using=using):
            now, row = lock_current(using, execution_id)
            if row["status"] not in SOURCES["pause"] or row["pause_requested_at"] is not None or row["ending_as"]:
                ending = f" and ending as {row['ending_as']}" if row["ending_as"] else ""
                raise InvalidTransition(f"execution {row['id']} is {row['status']}{ending}; it cannot be paused")
            if row["status"] == "running":
                write_execution(using, row["id"], {"pause_requested_at": sql_now(connections[using])})
            else:
                _pause_at_once(using, row)
            note(using, row, now, "pause", by)

    repeated(using, attempt)


def _pause_at_once(using: str, row: Mapping[str, Any]) -> None:
    revision = row["revision"] + 1
    changes = {"status": "paused", "wake_at": None, "awaiting": "", "blocked_by": "", "encoded_error": None}
    write_execution(using, row["id"], {**changes, "revision": revision})
    if row["deadline"] is None:
        SpineWork(using).withdraw(row["id"], revision).run()
    else:
        # Only the deadline still counts while it is paused.
        publish(using, row, revision, row["deadline"])


def resume(using: str, execution_id: UUID, by: Attribution) -> None:
    """Let a paused or blocked execution go on; a breakpoint that it stands at is passed."""

    def attempt() -> None:
        with transaction.atomic(using=using):
            now, row = lock_current(using, execution_id)
            if row["status"] in ("running", "pending") and row["pause_requested_at"] is not None:
                # Not reached yet: by the turn that runs, or by the next one after a shutdown or a lost worker.
                write_execution(using, row["id"], {"pause_requested_at": None})
            elif row["status"] in (*SOURCES["resume"], *SOURCES["unblock"]):
                if row["status"] == "paused":
                    _pass_breakpoint(using, row["id"])
                reopen_row(using, row, now, {})
            else:
                raise InvalidTransition(f"execution {row['id']} is {row['status']}; there is nothing to resume")
            note(using, row, now, "resume", by)

    repeated(using, attempt)


def reopen_row(using: str, row: Mapping[str, Any], now: datetime, more: Mapping[str, Any]) -> None:
    """Back to ``pending``, or to its undo steps, with the next intent: now, or at a ``run_after`` that lies ahead."""
    later = row["run_after"] if row["run_after"] is not None and row["run_after"] > now else None
    if row["ending_as"]:
        later = None  # its undo steps go on
    revision = row["revision"] + 1
    in_line = not row["ending_as"] and enter_again(using, row)
    changes = {
        **FREE,
        "status": READY,
        "in_line": in_line,
        "wake_at": later,
        "awaiting": "",
        "blocked_by": "",
        "encoded_error": None,
        "pause_requested_at": None,
        "revision": revision,
        **more,
    }
    if in_line:
        changes["deadline"] = None  # it begins with the admission, and so does the intent
        write_execution(using, row["id"], changes)
        SpineWork(using).withdraw(row["id"], revision).run()
        return
    write_execution(using, row["id"], changes)
    publish(using, row, revision, later)


def publish(using: str, row: Mapping[str, Any], revision: int, due_at: datetime | None) -> None:
    """Write the intent of a revision within the open transaction."""
    intent = Intent(
        execution_id=row["id"],
        workflow=row["workflow"],
        version=row["version"],
        revision=revision,
        epoch=row["epoch"],
        queue=row["queue"],
        priority=row["priority"],
        tenant=row["tenant"],
        opening=row["started_at"] is None,
        due_at=due_at,
    )
    SpineWork(using).publish(intent).run()


def _pass_breakpoint(using: str, execution_id: UUID) -> None:
    connection = connections[using]
    now = sql_now(connection)
    execute(
        using,
        build(
            f"UPDATE {Checkpoint._meta.db_table} SET {{sets}} WHERE execution_id = {{id}}"
            " AND kind = 'breakpoint' AND status = 'pending'",
            sets=assignments(connection, Checkpoint, {"status": "completed", "finished_at": now}),
            id=value(connection, field_of(Execution, "id"), execution_id),
        ),
    )


def write_execution(using: str, execution_id: UUID, changes: Mapping[str, Any]) -> None:
    """Write a row that this transaction has locked."""
    here = build("e.id = {id}", id=value(connections[using], field_of(Execution, "id"), execution_id))
    fetch(using, update_execution(using, changes, here))


def note(using: str, row: Mapping[str, Any], at: datetime, verb: str, by: Attribution) -> None:
    """Record who did what and why in this transaction; the ids on the spine too, after it where that is elsewhere.

    The plane's note is the record. What a kill leaves without its copy on the spine, the sweep *actions* copies.
    """
    spine = spine_alias()
    written = OperatorNote(
        id=time_ordered_id(),
        execution_id=row["id"],
        verb=verb,
        actor=by.actor,
        reason=by.reason,
        revision=row["revision"],
        at=at,
    )
    values = {field.attname: getattr(written, field.attname) for field in OperatorNote._meta.concrete_fields}
    execute(using, insert_row(connections[using], OperatorNote, values))
    if spine == using:
        execute(using, insert_action(written))
    else:
        transaction.on_commit(lambda: execute(spine, insert_action(written)), using=using, robust=True)


def insert_action(written: OperatorNote) -> Sql:
    """The spine's copy of a note, under the note's id: whoever copies it second changes nothing."""
    values = {name: getattr(written, name) for name in ("id", "execution_id", "verb", "actor", "at")}
    return insert_row(connections[spine_alias()], OperatorAction, values, on_conflict="ON CONFLICT DO NOTHING")
