"""Reopen: an operator's retry of a failed, timed out or dead execution, once per dead letter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models import Q

from django_durable.clock import sql_now
from django_durable.engine.chain import lock_current
from django_durable.engine.contention import repeated
from django_durable.engine.transitions import SOURCES
from django_durable.engine.transitions.reopen_elsewhere import ELSEWHERE, detach_children, put_back_elsewhere
from django_durable.engine.transitions.reopen_undo import check_resumable, resume_undo, undo_began
from django_durable.engine.transitions.start import chain_mark
from django_durable.engine.transitions.verbs import Attribution, note, reopen_row
from django_durable.errors import InvalidTransition
from django_durable.models import Checkpoint, DeadLetter, EventTaken, Execution, Message
from django_durable.models.checkpoint import UNDO
from django_durable.sql import assignments, build, execute, field_of, value

WAITS = ("signal", "update", "event", "any", "approval", "callback-wait")


def reopen(using: str, execution_id: UUID, by: Attribution, generation: int | None = None) -> None:
    """Open fresh budgets, keep what was done, remove what ended the run, and publish.

    Once undo steps of what ended it have begun, only those go on. ``generation``: of the dead letter that has to be
    the newest. Raises ``InvalidTransition``: not in a status that
    a retry may leave, retried already (``actor`` says by whom), its key is held by a newer run, or it is undone.
    """

    def attempt() -> None:
        with transaction.atomic(using=using):
            now, row = lock_current(using, execution_id)
            _check(using, row)
            undo_only = undo_began(using, row)
            if undo_only:
                check_resumable(using, row)
            letter = _take_letter(using, row, by, generation)
            ended_by = json.loads(row["failed_positions"] or "{}")
            if not undo_only:
                cut: int | None = ended_by.get("from")
                again = partial(reopen, using, by=by)
                put_back_elsewhere(using, row, ended_by.get("positions", []), cut, again)
                if cut is not None:
                    detach_children(using, row, cut)
            removed = _remove(using, row, undo_only=undo_only)
            if letter is not None and removed:
                DeadLetter.objects.using(using).filter(pk=letter).update(failures=json.dumps(removed))
            if undo_only:
                resume_undo(using, row)
            else:
                reopen_row(using, row, now, _fresh_budgets(row, now))
            note(using, row, now, "retry", by)

    repeated(using, attempt)


def _check(using: str, row: Mapping[str, Any]) -> None:
    if row["status"] not in SOURCES["reopen"]:
        last = DeadLetter.objects.using(using).filter(execution_id=row["id"]).order_by("-generation").first()
        actor = last.retried_by if last is not None and last.retried_at is not None else None
        already = f"; it was retried by {actor} already" if actor else ""
        raise InvalidTransition(
            f"execution {row['id']} is {row['status']}{already}; only a failed, timed out or dead execution"
            " can be retried",
            actor=actor,
        )
    if row["key"] is not None and row["current_key"] is None:
        mark = chain_mark(row["tenant"], row["workflow"], row["key"])
        newer = Execution.objects.using(using).filter(current_key=mark).values_list("pk", flat=True).first()
        raise InvalidTransition(
            f"execution {row['id']} is superseded by {newer}, which holds the key {row['key']!r} now"
        )


def _take_letter(using: str, row: Mapping[str, Any], by: Attribution, generation: int | None = None) -> int | None:
    """Close the open letter by a conditional update: of two operators exactly one wins."""
    newest = DeadLetter.objects.using(using).filter(execution_id=row["id"]).order_by("-generation").first()
    if newest is None:
        return None
    if generation not in (None, newest.generation):
        raise InvalidTransition(f"execution {row['id']} has a newer dead letter than #{generation}")
    connection = connections[using]
    won = execute(
        using,
        build(
            f"UPDATE {DeadLetter._meta.db_table} SET {{sets}} WHERE id = {{id}} AND retried_at IS NULL",
            sets=assignments(connection, DeadLetter, {"retried_at": sql_now(connection), "retried_by": by.actor}),
            id=value(connection, field_of(DeadLetter, "id"), newest.pk),
        ),
    )
    if not won:
        newest.refresh_from_db(using=using)
        raise InvalidTransition(
            f"execution {row['id']} was retried by {newest.retried_by} already", actor=newest.retried_by
        )
    return int(newest.pk)


def _remove(using: str, row: Mapping[str, Any], *, undo_only: bool) -> list[dict[str, Any]]:
    """Remove the checkpoints that ended the run and what hung on them; put back what was under way."""
    checkpoints = Checkpoint.objects.using(using).filter(execution_id=row["id"])
    doomed = Q(item=UNDO) & ~Q(status="completed") if undo_only else _failures(row)
    removed = [
        {
            "position": c.position,
            "kind": c.kind,
            "name": c.name,
            "status": c.status,
            "attempt": c.attempt,
            "error": c.encoded_error,
        }
        for c in checkpoints.filter(doomed)
    ]
    checkpoints.filter(doomed).delete()
    if not undo_only:
        _give_back(using, row, {one["position"] for one in removed if one["kind"] in WAITS})
        # A sleep or wait that the end closed goes on with the time that was stored when it was first reached.
        # What the run itself had called off stays so.
        closed = checkpoints.filter(status="cancelled", encoded_error=None)
        closed.update(status="pending", finished_at=None)
    return removed


def _failures(row: Mapping[str, Any]) -> Q:
    """What ended the run, and what is to begin anew."""
    ended_by = json.loads(row["failed_positions"] or "{}")
    begun = Q(kind__in=["step", "undo"], status__in=["pending", "cancelled"])
    # What runs elsewhere has been put back, and is not removed: the body may have gone on past it.
    doomed = (Q(position__in=ended_by.get("positions", [])) | begun) & ~ELSEWHERE
    return doomed | Q(position__gte=ended_by["from"]) if "from" in ended_by else doomed


def _give_back(using: str, row: Mapping[str, Any], positions: set[int]) -> None:
    """What waits behind the failure had taken is there again for the waits that come in their place."""
    if not positions:
        return
    Message.objects.using(using).filter(execution_id=row["id"], consumed_by__in=positions).update(consumed_by=None)
    receipts = EventTaken.objects.using(using).filter(execution_id=row["chain_id"], run_id=row["id"])
    receipts.filter(position__in=positions).delete()


def _fresh_budgets(row: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    timeout = row["timeout_seconds"]
    return {
        "recoveries": 0,
        "deadline": None if timeout is None else now + timedelta(seconds=timeout),
        "encoded_output": None,
        "failed_positions": "",
        "cancel_requested_at": None,
        "finished_at": None,
    }
