"""What becomes of a leased hint whose execution could not simply be claimed.

Stale hints are dropped, early ones go back to their time, lapsed leases are taken over and counted with the
dead worker's name, executions past their cap are buried, those past their deadline are timed out. Each in a
transaction of its own that begins by locking the execution.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from django_durable.clock import sql_after, sql_now
from django_durable.conf import config
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine.claimed import COLUMNS, Claimed, as_utc
from django_durable.engine.contention import repeated
from django_durable.engine.isolation import read_committed
from django_durable.engine.journal import CHECKPOINT, EXECUTION, fence
from django_durable.engine.lease_state import Lease
from django_durable.engine.locking import ExecutionBusy, lock_execution
from django_durable.engine.standing import standing_intent
from django_durable.engine.transitions import wants_results
from django_durable.engine.transitions.end_locked import Parent, end_locked
from django_durable.engine.transitions.family import hold, hold_parent
from django_durable.engine.transitions.hint_lease import Odd, Terms, still_leased
from django_durable.engine.transitions.leave import READY
from django_durable.engine.transitions.undo import Ending, ask_undo, begin_undo
from django_durable.engine.transitions.verbs import write_execution
from django_durable.engine.undos import has_undos
from django_durable.errors import ExecutionNotFound, ExecutionTimedOut, PlaneUnavailable, WorkerLost
from django_durable.models import Checkpoint, Execution
from django_durable.models.execution import TERMINAL
from django_durable.payloads import encode_failure
from django_durable.sql import Sql, build, execute, fetch, field_of, value

BUSY_SECONDS = 0.5
"""An execution whose row somebody holds locked is looked at again after so long."""

READY_AT = ("pending", "waiting", "compensating")
"""Statuses without a lease in which an execution may be due, at ``wake_at`` if that is set."""

TAKEOVERS_KEPT = 20
"""How many take-overs an execution lists: the first few and the last ones."""


def resolve(using: str, terms: Terms, odd: Odd) -> Claimed | None:
    """Deal with one odd hint; the claim, where it was a lapsed lease that may go on here."""
    return repeated(using, lambda: _resolve(using, terms, odd))


def _resolve(using: str, terms: Terms, odd: Odd) -> Claimed | None:
    sent_at = time.monotonic()
    work = SpineWork(using)
    with transaction.atomic(using=using):
        try:
            parent = hold_parent(using, odd.execution_id, wait=False)
            now, row = lock_execution(using, odd.execution_id, wait=False)
        except ExecutionNotFound:
            work.acknowledge(odd.hint_id, odd.token).run()
            return None
        except (ExecutionBusy, PlaneUnavailable):
            work.put_back(odd.hint_id, odd.token, sql_after(connections[work.spine], BUSY_SECONDS)).run()
            return None
        if not still_leased(work.spine, odd):
            return None
        if row["status"] in TERMINAL or (row["revision"], row["epoch"]) != (odd.revision, odd.epoch):
            _drop_stale(work, odd, row)
            return None
        if row["deadline"] is not None and row["deadline"] <= now:
            _time_out(using, row, parent)
            return None
        if row["lease_token"] is None:
            _resolve_unleased(using, work, odd, row, parent, now)
            return None
        return _take_over(using, terms, odd, row, parent, now, sent_at)


def _drop_stale(work: SpineWork, odd: Odd, row: Mapping[str, Any]) -> None:
    """A hint of another revision is dropped; one of an older epoch was overtaken by a bump and is replaced."""
    work.acknowledge(odd.hint_id, odd.token)
    intent = standing_intent(work.plane, row) if odd.epoch < row["epoch"] and row["lease_token"] is None else None
    if intent is not None:
        work.publish(intent)
    work.run()


def _resolve_unleased(
    using: str, work: SpineWork, odd: Odd, row: Mapping[str, Any], parent: Parent, now: datetime
) -> None:
    if row["recoveries"] > cap_of(row):
        _bury(using, row, parent, row["takeovers"])
        return
    status = row["status"]
    if status in READY_AT and row["wake_at"] is not None and row["wake_at"] > now:
        work.put_back(odd.hint_id, odd.token, min(row["wake_at"], row["deadline"] or row["wake_at"]))
    elif row["deadline"] is not None and status in ("waiting", "paused"):
        work.put_back(odd.hint_id, odd.token, row["deadline"])
    elif status in READY_AT and (status != "waiting" or row["wake_at"]):
        # It became claimable between the two looks: due again at once.
        work.put_back(odd.hint_id, odd.token, sql_now(connections[work.spine]))
    else:
        work.acknowledge(odd.hint_id, odd.token)
        intent = standing_intent(using, row) if status == "blocked" else None
        if intent is not None:
            work.publish(intent)  # for other code only: the lease has made this hint anybody's
    work.run()


def cap_of(row: Mapping[str, Any]) -> int:
    """How many crashes without progress an execution survives."""
    own: int | None = row["max_recoveries"]
    return config().max_recoveries if own is None else own


def _take_over(
    using: str, terms: Terms, odd: Odd, row: Mapping[str, Any], parent: Parent, now: datetime, sent_at: float
) -> Claimed | None:
    """The lease of a running execution has lapsed: count it, and go on or bury."""
    recoveries = _recoveries_after(using, row)
    takeovers = note_takeover(row, now, "lease expired")
    if recoveries > cap_of(row):
        _bury(using, {**row, "recoveries": recoveries}, parent, takeovers)
        return None
    # The turn that was asked to make room for the undo steps is gone: they begin here. Never pending under a token,
    # unless somebody wrote past the engine: its appends would all be refused.
    status = "compensating" if row["ending_as"] else "running"
    changes = {
        "status": status,
        "lease_token": odd.token,
        "worker": terms.worker,
        "claimed_at": sql_now(connections[using]),
        "recoveries": recoveries,
        "takeovers": takeovers,
    }
    write_execution(using, row["id"], changes)
    return Claimed(
        using=using,
        hint_id=odd.hint_id,
        token=odd.token,
        worker=terms.worker,
        row={**{name: row[name] for name in COLUMNS}, "status": status, "recoveries": recoveries},
        read_at=now,
        lease_seconds=config().lease_seconds,
        sent_at=sent_at,
    )


def _recoveries_after(using: str, row: Mapping[str, Any]) -> int:
    """How many crashes count with this one. What crashed before the undo steps began is over, and counts for none."""
    if row["ending_as"] and row["status"] == "running":
        return 0
    return 1 if _progressed(using, row) else int(row["recoveries"]) + 1


def _progressed(using: str, row: Mapping[str, Any]) -> bool:
    """Whether the lost claim had finished anything: progress resets the count."""
    connection = connections[using]
    return bool(
        fetch(
            using,
            build(
                f"SELECT 1 FROM {CHECKPOINT} WHERE execution_id = {{id}} AND lease_token = {{token}}"
                " AND status <> 'pending' LIMIT 1",
                id=value(connection, field_of(Execution, "id"), row["id"]),
                token=value(connection, field_of(Checkpoint, "lease_token"), row["lease_token"]),
            ),
        )
    )


def note_takeover(row: Mapping[str, Any], now: datetime, reason: str) -> str:
    """The list of take-overs with one more: who held it, from when to when, why it ended."""
    entry = {
        "worker": row["worker"],
        "start": as_utc(row["claimed_at"]).isoformat() if row["claimed_at"] else None,
        "end": now.isoformat(),
        "reason": reason,
    }
    try:
        listed = [*json.loads(row["takeovers"] or "[]"), entry]
    except (ValueError, TypeError):
        listed = [entry]  # written past the engine: evidence never stands in the way of a take-over
    if len(listed) > TAKEOVERS_KEPT:
        listed = listed[:5] + listed[5 - TAKEOVERS_KEPT :]
    return json.dumps(listed)


def _bury(using: str, row: Mapping[str, Any], parent: Parent, takeovers: str) -> None:
    lost = WorkerLost(
        f"worker lost: {row['recoveries']} crashes without progress, the cap is {cap_of(row)} (MAX_RECOVERIES)"
    )
    more = {"recoveries": row["recoveries"], "takeovers": takeovers}
    end_locked(using, row, parent, status="dead", error=encode_failure(lost), more=more)


def bury_for(using: str, execution_id: UUID, why: str, still: Callable[[], bool]) -> None:
    """End an execution as ``dead`` because of something that it has running elsewhere, if that is ``still`` so."""

    def attempt() -> None:
        with transaction.atomic(using=using):
            parent = hold_parent(using, execution_id)
            _now, row = lock_execution(using, execution_id)
            if wants_results(row) and still():
                lost = WorkerLost(f"worker lost: {why}; the cap is {cap_of(row)} (MAX_RECOVERIES)")
                end_locked(using, row, parent, status="dead", error=encode_failure(lost))

    repeated(using, attempt)


def _time_out(using: str, row: Mapping[str, Any], parent: Parent, *, held: bool = False) -> bool:
    """Past its deadline: undo first, where something is to be undone; whether this ended it.

    ``held``: a live turn has to stop before its undo steps begin.
    """
    late = encode_failure(
        ExecutionTimedOut(f"the execution did not finish before its deadline {row['deadline'].isoformat()}")
    )
    if not has_undos(using, row):
        end_locked(using, row, parent, status="timed_out", error=late)
        return True
    (ask_undo if held else begin_undo)(using, row, Ending(status="timed_out", error=late))
    return False


def end_overdue(using: str, row: Mapping[str, Any], parent: Parent) -> None:
    """Time out a locked row past its deadline, its parent's locked before it: that needs no code."""
    _time_out(using, row, parent)


def time_out_claimed(claim: Claimed, lease: Lease) -> bool:
    """Time an execution out under the token of the turn that overran; ``False`` if the token is gone.

    The lease is lost with it, or, where undo steps have to follow, revoked: they begin when the turn has stopped.
    """
    using = claim.using

    def attempt() -> bool:
        with read_committed(using):
            parent = hold(using, claim.row["parent_id"])
            # SQLite takes its write lock with the first write, so the guard comes before the look.
            if not execute(using, _touch(claim)):
                return False
            _now, row = lock_execution(using, claim.id)
            if row["deadline"] is None:
                return False  # it is decided already how the run ends
            lease.lost = _time_out(using, row, parent, held=True)
            lease.revoked = True
            return True

    return repeated(using, attempt)


def _touch(claim: Claimed, *, undo: bool = False) -> Sql:
    held = fence(claim, undo=undo)
    return build(f"UPDATE {EXECUTION} AS e SET lease_token = e.lease_token WHERE {{fence}}", fence=held)


def abandon_attempt(claim: Claimed, reason: str) -> bool:
    """Give up a claim whose body ended the way a process ends: counted like a crash, due again shortly."""
    using = claim.using

    def attempt() -> bool:
        with transaction.atomic(using=using):
            if not execute(using, _touch(claim, undo=True)):
                return False
            now, row = lock_execution(using, claim.id)
            changes = {
                "status": READY,
                "lease_token": None,
                "worker": "",
                "claimed_at": None,
                "recoveries": _recoveries_after(using, row),
                "takeovers": note_takeover(row, now, reason),
            }
            write_execution(using, row["id"], changes)
            work = SpineWork(using)
            pause = sql_after(connections[work.spine], min(60.0, 2.0 ** row["recoveries"] / 2))
            work.put_back(claim.hint_id, claim.token, pause).run()
            return True

    return repeated(using, attempt)
