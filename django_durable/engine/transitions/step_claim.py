"""Claim of a step elsewhere: its hint is leased on the spine, then its checkpoint is taken on the plane.

The checkpoint carries the token of whoever runs the attempt, as the execution's row does for a turn. A hint whose
attempt is over, or whose execution has ended, is dropped before any user code.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connections, transaction

from django_durable.clock import sql_after, sql_now
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import COLUMNS, Claimed
from django_durable.engine.contention import repeated
from django_durable.engine.journal import CHECKPOINT, LOADED, Record, record_of
from django_durable.engine.locking import ExecutionBusy, lock_execution
from django_durable.engine.transitions import wants_results
from django_durable.engine.transitions.fan_in import this_checkpoint
from django_durable.engine.transitions.hint_lease import Odd, Terms, any_due, lease, still_leased
from django_durable.engine.transitions.recover import BUSY_SECONDS, bury_for, cap_of
from django_durable.errors import ExecutionNotFound, PlaneUnavailable
from django_durable.models import Checkpoint, DispatchHint
from django_durable.sql import Sql, assignments, build, columns, convert, execute, fetch, is_postgres

READ = (*LOADED, "recoveries", "encoded_input", "encoded_heartbeat", "queue")


@dataclass(slots=True, kw_only=True)
class ClaimedStep(Claimed):
    """One attempt of a step elsewhere under one token; ``row`` is its execution's."""

    record: Record
    encoded_input: str
    encoded_heartbeat: str | None
    queue: str
    lost: bool
    """Whether the attempt had been started before, by somebody who is gone."""


def lease_steps(spine: str, terms: Terms, *, planes: Sql | None = None) -> list[Odd]:
    """Lease due hints of steps, of the spine's own plane where no others are named."""
    wanted = replace(terms, kind=DispatchHint.Kind.STEP)
    if wanted.empty:
        return []
    if not is_postgres(connections[spine]) and not any_due(spine, wanted, planes=planes):
        return []  # an idle worker takes no write lock
    return repeated(spine, lambda: lease(spine, wanted, planes=planes))


def claim_step(using: str, terms: Terms, odd: Odd) -> ClaimedStep | None:
    """Take the attempt that a leased hint stands for; ``None``: it is over, or somebody has its execution locked."""
    return repeated(using, lambda: _claim(using, terms, odd))


def _claim(using: str, terms: Terms, odd: Odd) -> ClaimedStep | None:
    sent_at = time.monotonic()
    work = SpineWork(using)
    with transaction.atomic(using=using):
        try:
            now, row = lock_execution(using, odd.execution_id, shared=True, wait=False)
        except ExecutionNotFound:
            work.acknowledge(odd.hint_id, odd.token).run()
            return None
        except (ExecutionBusy, PlaneUnavailable):
            work.put_back(odd.hint_id, odd.token, sql_after(connections[work.spine], BUSY_SECONDS)).run()
            return None
        if not still_leased(work.spine, odd):
            return None
        found = _read(using, odd)
        if found is None or not wants_results(row):
            work.acknowledge(odd.hint_id, odd.token).run()
            return None
        lost = found["begun"] > found["attempt"]
        # Who hands an attempt back gives its token up, and has counted what is to be counted.
        recoveries = found["recoveries"] + int(lost and found["lease_token"] is not None)
        if recoveries <= cap_of(row):
            _take(using, odd, found, recoveries)
            return _claimed(using, terms, odd, row, found, now, sent_at, lost)
    # Past the cap the execution is dead: that locks its row exclusively, and looks again.
    why = f"step {found['name']!r} lost its worker {recoveries} times"
    bury_for(using, odd.execution_id, why, lambda: _read(using, odd) is not None)
    return None


def _read(using: str, odd: Odd) -> dict[str, Any] | None:
    """The checkpoint, locked, if it still waits for this very attempt."""
    connection = connections[using]
    lock = " FOR UPDATE" if is_postgres(connection) else ""
    rows = fetch(
        using,
        build(
            f"SELECT {columns(Checkpoint, READ)} FROM {CHECKPOINT} WHERE {{here}} AND status = 'pending'{lock}",
            here=this_checkpoint(using, odd.execution_id, odd.position, odd.item),
        ),
    )
    if not rows:
        return None
    found = convert(connection, Checkpoint, READ, rows[0])
    return found if found["attempt"] + 1 == odd.revision and found["queued_at"] is not None else None


def _take(using: str, odd: Odd, found: Mapping[str, Any], recoveries: int) -> None:
    connection = connections[using]
    changes: dict[str, Any] = {
        "lease_token": odd.token,
        "begun": found["attempt"] + 1,
        "recoveries": recoveries,
        "heartbeat_at": None,
    }
    if found["started_at"] is None:
        changes["started_at"] = sql_now(connection)
    execute(
        using,
        build(
            f"UPDATE {CHECKPOINT} SET {{sets}} WHERE {{here}}",
            sets=assignments(connection, Checkpoint, changes),
            here=this_checkpoint(using, odd.execution_id, odd.position, odd.item),
        ),
    )


def _claimed(
    using: str,
    terms: Terms,
    odd: Odd,
    row: Mapping[str, Any],
    found: Mapping[str, Any],
    now: datetime,
    sent_at: float,
    lost: bool,
) -> ClaimedStep:
    taken = {**found, "started_at": found["started_at"] or now, "begun": found["attempt"] + 1}
    return ClaimedStep(
        using=using,
        hint_id=odd.hint_id,
        token=odd.token,
        worker=terms.worker,
        # The turn's own hint watches the execution's deadline.
        row={**{name: row[name] for name in COLUMNS}, "deadline": None},
        read_at=now,
        lease_seconds=terms.lease_seconds,
        sent_at=sent_at,
        record=record_of(taken, odd.token),
        encoded_input=found["encoded_input"] or "null",
        encoded_heartbeat=found["encoded_heartbeat"],
        queue=found["queue"],
        lost=lost,
    )
