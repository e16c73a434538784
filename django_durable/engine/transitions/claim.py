"""Claim: lease due hints and take their executions, checked against the plane's truth.

Where hint and execution are in one PostgreSQL database this is one statement that locks both and skips what is
locked. Elsewhere the hints are leased by one atomic update, then each execution is claimed by one of its own.
What cannot simply be run (stale, early, lapsed, past its deadline) comes back as *odd* and is dealt with one by
one, each in an error boundary of its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from django_durable.clock import sql_after, sql_now, sql_until_now
from django_durable.conf import config
from django_durable.dispatch.hints import TABLE as HINT
from django_durable.engine.claimed import COLUMNS, Claimed, as_utc
from django_durable.engine.contention import repeated
from django_durable.engine.journal import EXECUTION
from django_durable.engine.locking import read_time
from django_durable.engine.transitions import SOURCES, listed
from django_durable.models import DispatchHint, Execution
from django_durable.sql import (
    Sql,
    assignments,
    build,
    columns,
    convert,
    fetch,
    field_of,
    is_postgres,
    join,
    value,
)

LEVELS = (2, 1, 0, -1, -2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a worker asks for: who it is, what it serves and knows, how much it can take."""

    worker: str
    lease_seconds: float
    limit: int
    queues: tuple[str, ...]
    known: tuple[str, ...]
    code: str
    state: int = DispatchHint.State.LIVE
    hint_id: UUID | None = None
    kind: int = DispatchHint.Kind.TURN
    plane: str | None = None
    """Only this plane's work, ``''`` for the spine's own; ``None``: all of it."""

    @property
    def empty(self) -> bool:
        """Whether nothing can be claimed under them: no queue served, no workflow known, no room."""
        return not (self.queues or self.hint_id) or not self.known or self.limit < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """A hint leased under a fresh token whose execution could not simply be claimed, or not yet."""

    hint_id: UUID
    token: UUID
    execution_id: UUID
    revision: int
    epoch: int
    state: int
    plane: str = ""
    position: int = -1
    item: int = -1


def claim_due(using: str, terms: Terms) -> tuple[list[Claimed], list[Odd]]:
    """Claim up to ``terms.limit`` executions on the spine's own database: oldest first within a priority level."""
    if terms.empty:
        return [], []
    if is_postgres(connections[using]):
        return repeated(using, lambda: _claim_in_one_statement(using, terms))
    if not any_due(using, terms):
        return [], []  # an idle worker takes no write lock
    return repeated(using, lambda: _claim_in_two_steps(using, terms))


# A claim that may simply go on: this very intent, nobody's lease, due, and nothing that ends it first.
_PLAIN = (
    "(e.revision = {revision} AND e.epoch = {epoch} AND e.lease_token IS NULL"
    f" AND e.status IN ({listed(SOURCES['claim'])})"
    " AND (e.status <> 'waiting' OR e.wake_at IS NOT NULL)"
    " AND (e.wake_at IS NULL OR e.wake_at <= {now}) AND (e.deadline IS NULL OR e.deadline > {now})"
    " AND e.recoveries <= COALESCE(e.max_recoveries, {cap}))"
)


def _plain(using: str, revision: Sql, epoch: Sql) -> Sql:
    return build(
        _PLAIN,
        revision=revision,
        epoch=epoch,
        now=sql_now(connections[using]),
        cap=Sql("%s", (config().max_recoveries,)),
    )


def _taken(using: str, terms: Terms, token: Sql | UUID) -> Sql:
    """What a claim writes to the execution's row."""
    connection = connections[using]
    now = sql_now(connection)
    changes: dict[str, Any] = {
        "status": Sql("CASE WHEN e.ending_as <> '' THEN 'compensating' ELSE 'running' END"),
        "lease_token": token,
        "worker": terms.worker,
        "claimed_at": now,
        "started_at": build("COALESCE(e.started_at, {now})", now=now),
        "wake_at": None,
        "awaiting": "",
        "encoded_error": Sql("CASE WHEN e.status = 'blocked' THEN NULL ELSE e.encoded_error END"),
        "blocked_by": "",
    }
    return assignments(connection, Execution, changes)


def _leased(using: str, terms: Terms, token: Sql | UUID) -> Sql:
    """What a claim writes to the hint."""
    connection = connections[using]
    changes = {
        "owner": terms.worker,
        "token": token,
        "due_at": sql_after(connection, terms.lease_seconds),
        "state": DispatchHint.State.LIVE,
    }
    return assignments(connection, DispatchHint, changes)


def wanted(
    using: str,
    terms: Terms,
    *,
    priority: Sql | None = None,
    queue: Sql | None = None,
    planes: Sql | None = None,
) -> Sql:
    """The condition on a hint that this worker may lease now."""
    connection = connections[using]

    def bound(name: str, item: object) -> Sql:
        return value(connection, field_of(DispatchHint, name), item)

    parts = [
        planes or Sql("h.plane = ''"),
        Sql(f"h.state = {int(terms.state)} AND h.kind = {int(terms.kind)}"),
        build("h.due_at <= {now}", now=sql_until_now(connection)),
        build("h.definition IN ({known})", known=join(", ", [bound("definition", k) for k in terms.known])),
    ]
    if terms.state == DispatchHint.State.BLOCKED:
        parts.append(build("h.avoid <> {code}", code=bound("avoid", terms.code)))
    if terms.hint_id is not None:
        parts.append(build("h.id = {id}", id=bound("id", terms.hint_id)))
    elif queue is not None and priority is not None:
        parts += [build("h.queue = {queue}", queue=queue), build("h.priority = {level}", level=priority)]
    else:
        # Every level by name: a range of the index ends at the first column that is left open.
        parts.append(build("h.queue IN ({q})", q=join(", ", [bound("queue", q) for q in terms.queues])))
        parts.append(Sql(f"h.priority IN ({', '.join(map(str, LEVELS))})"))
    return join(" AND ", parts)


def _claim_in_one_statement(using: str, terms: Terms) -> tuple[list[Claimed], list[Odd]]:
    """PostgreSQL, one database. Level by level, so that each level is one range of the index."""
    limit = _limit(terms)
    condition = wanted(using, terms, priority=Sql("level.priority"), queue=Sql("level.queue"))
    picked = build(
        "SELECT h.id AS hint_id, gen_random_uuid() AS fresh, e.id AS eid, h.revision AS hint_revision,"
        f" h.epoch AS hint_epoch, h.state AS hint_state, {{plain}} AS plain FROM {HINT} h JOIN {EXECUTION} e"
        " ON e.id = h.execution_id WHERE {wanted} ORDER BY h.due_at LIMIT {limit} FOR UPDATE OF h, e SKIP LOCKED",
        plain=_plain(using, Sql("h.revision"), Sql("h.epoch")),
        wanted=condition,
        limit=limit,
    )
    statement = build(
        "WITH due AS MATERIALIZED (SELECT p.* FROM (VALUES {levels}) AS level(queue, priority)"
        " CROSS JOIN LATERAL ({picked}) AS p LIMIT {limit}),"
        f" claimed AS (UPDATE {EXECUTION} e SET {{taken}} FROM due WHERE e.id = due.eid AND due.plain"
        f" RETURNING {columns(Execution, COLUMNS, 'e.')}),"
        f" leased AS (UPDATE {HINT} h SET {{leased}} FROM due WHERE h.id = due.hint_id RETURNING h.id)"
        " SELECT due.hint_id, due.fresh, due.eid, due.hint_revision, due.hint_epoch, due.hint_state,"
        " {now}, claimed.* FROM due LEFT JOIN claimed ON claimed.id = due.eid",
        levels=_levels(using, terms),
        picked=picked,
        limit=limit,
        taken=_taken(using, terms, Sql("due.fresh")),
        leased=_leased(using, terms, Sql("due.fresh")),
        now=sql_now(connections[using]),
    )
    sent_at = time.monotonic()
    claims: list[Claimed] = []
    odd: list[Odd] = []
    for hint_id, fresh, eid, revision, epoch, state, now, *row in fetch(using, statement):
        if row[0] is None:
            odd.append(
                Odd(
                    hint_id=hint_id,
                    token=fresh,
                    execution_id=eid,
                    revision=revision,
                    epoch=epoch,
                    state=state,
                )
            )
        else:
            claims.append(_claimed(using, terms, hint_id, fresh, row, now, sent_at))
    return claims, odd


def _limit(terms: Terms) -> Sql:
    """The number itself: a plan that is made for any number would read and sort everything that is due."""
    return Sql(str(int(terms.limit)))


def _levels(using: str, terms: Terms) -> Sql:
    connection = connections[using]
    if terms.hint_id is not None:
        return Sql("('', 0)")  # one hint by its id, whatever its queue and level
    pairs = [
        build(
            "({queue}, {level})",
            queue=value(connection, field_of(DispatchHint, "queue"), queue),
            level=value(connection, field_of(DispatchHint, "priority"), level),
        )
        for level in LEVELS
        for queue in terms.queues
    ]
    return join(", ", pairs)


def any_due(using: str, terms: Terms, *, planes: Sql | None = None) -> bool:
    """Whether there is anything to lease, asked without a lock."""
    condition = wanted(using, terms, planes=planes)
    return bool(fetch(using, build(f"SELECT 1 FROM {HINT} h WHERE {{wanted}} LIMIT 1", wanted=condition)))


def _claim_in_two_steps(using: str, terms: Terms) -> tuple[list[Claimed], list[Odd]]:
    sent_at = time.monotonic()
    claims: list[Claimed] = []
    odd: list[Odd] = []
    with transaction.atomic(using=using):
        for leased in lease(using, terms):
            try:
                claim = claim_one(using, terms, leased, sent_at)
            except ValueError:
                claim = None  # a time that is none, written past the engine: the others go on
            if claim is None:
                odd.append(leased)
            else:
                claims.append(claim)
    return claims, odd


def lease(using: str, terms: Terms, *, planes: Sql | None = None) -> list[Odd]:
    """Lease hints, those of the spine's own plane where no others are named: one atomic update."""
    connection = connections[using]
    fresh = Sql("gen_random_uuid()" if is_postgres(connection) else "lower(hex(randomblob(16)))")
    # Picked once, before the update: a server may run a subquery again for each row, and each time it would find
    # others that are not yet leased, beyond the limit.
    statement = build(
        f"WITH first_due AS {{once}} ({{first}}) UPDATE {HINT} SET {{leased}} WHERE id IN (SELECT id FROM first_due)"
        " RETURNING id, token, execution_id, revision, epoch, plane, position, item",
        once=Sql("MATERIALIZED" if is_postgres(connection) else ""),
        leased=_leased(using, terms, fresh),
        first=_first_due(using, terms, planes),
    )
    names = ["id", "token", "execution_id", "revision", "epoch", "plane", "position", "item"]
    rows = (convert(connection, DispatchHint, names, row) for row in fetch(using, statement))
    return [Odd(hint_id=row.pop("id"), state=terms.state, **row) for row in rows]


def _first_due(using: str, terms: Terms, planes: Sql | None) -> Sql:
    """The ids of the first due hints, by level and age; on PostgreSQL one range a level, past what is locked."""
    limit = _limit(terms)
    if not is_postgres(connections[using]):
        return build(
            f"SELECT h.id FROM {HINT} h WHERE {{wanted}} ORDER BY h.priority DESC, h.due_at LIMIT {{limit}}",
            wanted=wanted(using, terms, planes=planes),
            limit=limit,
        )
    level = {"priority": Sql("level.priority"), "queue": Sql("level.queue")}
    return build(
        "SELECT p.id FROM (VALUES {levels}) AS level(queue, priority) CROSS JOIN LATERAL"
        f" (SELECT h.id FROM {HINT} h WHERE {{wanted}} ORDER BY h.due_at LIMIT {{limit}} FOR UPDATE SKIP LOCKED) AS p"
        " LIMIT {limit}",
        levels=_levels(using, terms),
        wanted=wanted(using, terms, planes=planes, **level),
        limit=limit,
    )


def claim_one(using: str, terms: Terms, leased: Odd, sent_at: float) -> Claimed | None:
    """Claim the execution of a leased hint on its plane, if it may simply go on and nobody has it locked."""
    connection = connections[using]
    free = ""
    if is_postgres(connection):
        free = f" AND e.id IN (SELECT f.id FROM {EXECUTION} f WHERE f.id = e.id FOR UPDATE SKIP LOCKED)"
    statement = build(
        f"UPDATE {EXECUTION} AS e SET {{taken}} WHERE e.id = {{id}} AND {{plain}}{free}"
        f" RETURNING {{now}}, {columns(Execution, COLUMNS)}",
        taken=_taken(using, terms, leased.token),
        id=value(connection, field_of(Execution, "id"), leased.execution_id),
        plain=_plain(using, Sql("%s", (leased.revision,)), Sql("%s", (leased.epoch,))),
        now=sql_now(connection),
    )
    rows = fetch(using, statement)
    if not rows:
        return None
    now, *row = rows[0]
    return _claimed(using, terms, leased.hint_id, leased.token, row, read_time(now), sent_at)


def _claimed(
    using: str, terms: Terms, hint_id: UUID, token: UUID, row: Sequence[Any], now: Any, sent_at: float
) -> Claimed:
    return Claimed(
        using=using,
        hint_id=hint_id,
        token=token,
        worker=terms.worker,
        row=convert(connections[using], Execution, COLUMNS, row),
        read_at=as_utc(now),
        lease_seconds=terms.lease_seconds,
        sent_at=sent_at,
    )
