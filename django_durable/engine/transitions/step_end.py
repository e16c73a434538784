"""What becomes of an attempt of a step elsewhere: settled, tried again later, handed back, told to be alive.

Each is one transaction on the plane under the attempt's own token: a late result of an earlier attempt, or of a
worker that was given up, finds another token or none and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import connections, transaction

from django_durable.clock import sql_after, sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.contention import repeated
from django_durable.engine.journal import CHECKPOINT, Record
from django_durable.engine.standing import step_intent
from django_durable.engine.transitions import wants_results
from django_durable.engine.transitions.fan_in import (
    lock_owner,
    settle,
    this_checkpoint,
)
from django_durable.engine.transitions.step_claim import ClaimedStep
from django_durable.errors import ExecutionNotFound, PlaneUnavailable
from django_durable.models import Checkpoint, Execution
from django_durable.sql import Sql, assignments, build, execute, fetch, field_of, value

EXECUTION = Execution._meta.db_table


def settle_step(claim: ClaimedStep, changes: Mapping[str, Any]) -> bool:
    """Record the result or the final failure, and what follows; ``False``: the token is gone."""
    record = claim.record

    def act(row: dict[str, Any]) -> bool:
        if not settle(claim.using, row, record.position, record.item, changes, holds(claim)):
            return False
        SpineWork(claim.using).acknowledge(claim.hint_id, claim.token).run()
        return True

    return _while_wanted(claim, act)


def try_again(claim: ClaimedStep, changes: Mapping[str, Any], due_at: datetime | None) -> bool:
    """Record a failed attempt and dispatch the next one; ``False``: the token is gone."""

    def act(row: dict[str, Any]) -> bool:
        if not _amend(claim, {**changes, "lease_token": None}):
            return False
        record, attempt = claim.record, int(changes["attempt"]) + 1
        intent = step_intent(row, record.position, record.item, attempt, claim.queue, due_at)
        SpineWork(claim.using).acknowledge(claim.hint_id, claim.token).publish(intent).run()
        return True

    return _while_wanted(claim, act)


def amend_step(claim: ClaimedStep, changes: Mapping[str, Any]) -> bool:
    """Change the attempt's checkpoint while the attempt goes on; ``False``: the token is gone."""
    return _while_wanted(claim, lambda _row: _amend(claim, changes))


def hand_back(claim: ClaimedStep, *, delay: float = 0.0, begun: bool = False, crashed: bool = False) -> bool:
    """Give the attempt up: the same one is due again after ``delay`` seconds.

    ``begun``: its body had started; ``crashed``: and ended as a process does, which counts like the loss of one.
    """

    def attempt() -> bool:
        work = SpineWork(claim.using)
        changes: dict[str, Any] = {"lease_token": None, **({} if begun else {"begun": claim.record.attempt})}
        if crashed:
            changes["recoveries"] = Sql("c.recoveries + 1")
        with transaction.atomic(using=claim.using):
            held = _amend(claim, changes)
            work.put_back(claim.hint_id, claim.token, sql_after(connections[work.spine], delay)).run()
            return held

    return repeated(claim.using, attempt)


def beat(claim: ClaimedStep, encoded: str) -> bool:
    """Record a sign of life with its details; ``False``: the token is gone."""
    now = sql_now(connections[claim.using])
    return repeated(claim.using, lambda: _amend(claim, {"heartbeat_at": now, "encoded_heartbeat": encoded}))


def holds(claim: ClaimedStep) -> Sql:
    """The condition that the checkpoint ``c`` is still this attempt's."""
    token = value(connections[claim.using], field_of(Checkpoint, "lease_token"), claim.token)
    return build("c.lease_token = {token} AND c.status = 'pending'", token=token)


def own_record(claim: ClaimedStep) -> Record:
    """The checkpoint as this very attempt has written it; as it was claimed, where another one has since."""
    record = claim.record
    rows = fetch(
        claim.using,
        build(
            f"SELECT c.status, c.encoded_output FROM {CHECKPOINT} c WHERE {{here}} AND c.lease_token = {{token}}",
            here=this_checkpoint(claim.using, claim.id, record.position, record.item, "c."),
            token=value(connections[claim.using], field_of(Checkpoint, "lease_token"), claim.token),
        ),
    )
    return replace(record, status=rows[0][0], encoded_output=rows[0][1]) if rows else record


def _while_wanted(claim: ClaimedStep, act: Callable[[dict[str, Any]], bool]) -> bool:
    """One transaction that begins by locking the execution, which must still want what it has running elsewhere."""

    def attempt() -> bool:
        with transaction.atomic(using=claim.using):
            try:
                row = lock_owner(claim.using, claim.id)
            except (ExecutionNotFound, PlaneUnavailable):
                return False  # it has moved to another plane, or does so now: under another epoch
            return wants_results(row) and row["epoch"] == claim.row["epoch"] and act(row)

    return repeated(claim.using, attempt)


def _amend(claim: ClaimedStep, changes: Mapping[str, Any]) -> bool:
    record = claim.record
    statement = build(
        f"UPDATE {CHECKPOINT} AS c SET {{sets}} WHERE {{here}} AND {{holds}}",
        sets=assignments(connections[claim.using], Checkpoint, changes),
        here=this_checkpoint(claim.using, claim.id, record.position, record.item, "c."),
        holds=holds(claim),
    )
    return bool(execute(claim.using, statement))
