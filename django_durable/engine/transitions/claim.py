"""Claim: lease due hints and take their executions, checked against the plane's truth.

Where hint and execution are in one PostgreSQL database this is one statement that locks both and skips what is
locked. Elsewhere the hints are leased by one atomic update, then each execution is claimed by one of its own.
What cannot simply be run (stale, early, lapsed, past its deadline) comes back as *odd* and is dealt with one by
one, each in an error boundary of its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from django_durable.clock import sql_now
from django_durable.conf import config
from django_durable.dispatch.hints import TABLE as HINT
from django_durable.engine.claimed import COLUMNS, Claimed, as_utc
from django_durable.engine.contention import repeated
from django_durable.engine.journal import EXECUTION
from django_durable.engine.locking import read_time
from django_durable.engine.transitions import SOURCES, listed
from django_durable.engine.transitions.hint_lease import (
    Odd,
    Terms,
    any_due,
    lease,
    lease_columns,
    levels_of,
    limit_of,
    wanted,
)
from django_durable.models import Execution
from django_durable.sql import (
    Sql,
    assignments,
    build,
    columns,
    convert,
    fetch,
    field_of,
    is_postgres,
    value,
)


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


def _claim_in_one_statement(using: str, terms: Terms) -> tuple[list[Claimed], list[Odd]]:
    """PostgreSQL, one database. Level by level, so that each level is one range of the index."""
    limit = limit_of(terms)
    condition = wanted(using, terms, priority=Sql("level.priority"), queue=Sql("level.queue"))
    picked = build(
        "SELECT h.id AS hint_id, gen_random_uuid() AS fresh, e.id AS eid, h.revision AS hint_revision,"
        f" h.epoch AS hint_epoch, {{plain}} AS plain FROM {HINT} h JOIN {EXECUTION} e"
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
        " SELECT due.hint_id, due.fresh, due.eid, due.hint_revision, due.hint_epoch,"
        " {now}, claimed.* FROM due LEFT JOIN claimed ON claimed.id = due.eid AND due.plain",
        levels=levels_of(using, terms),
        picked=picked,
        limit=limit,
        taken=_taken(using, terms, Sql("due.fresh")),
        leased=lease_columns(using, terms, Sql("due.fresh")),
        now=sql_now(connections[using]),
    )
    sent_at = time.monotonic()
    claims: list[Claimed] = []
    odd: list[Odd] = []
    for hint_id, fresh, eid, revision, epoch, now, *row in fetch(using, statement):
        if row[0] is None:
            odd.append(
                Odd(
                    hint_id=hint_id,
                    token=fresh,
                    execution_id=eid,
                    revision=revision,
                    epoch=epoch,
                    sent_at=sent_at,
                )
            )
        else:
            claims.append(_claimed(using, terms, hint_id, fresh, row, now, sent_at))
    return claims, odd


def _claim_in_two_steps(using: str, terms: Terms) -> tuple[list[Claimed], list[Odd]]:
    claims: list[Claimed] = []
    odd: list[Odd] = []
    with transaction.atomic(using=using):
        for leased in lease(using, terms):
            try:
                claim = claim_one(using, terms, leased)
            except ValueError:
                claim = None  # a time that is none, written past the engine: the others go on
            if claim is None:
                odd.append(leased)
            else:
                claims.append(claim)
    return claims, odd


def claim_one(using: str, terms: Terms, leased: Odd) -> Claimed | None:
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
    return _claimed(using, terms, leased.hint_id, leased.token, row, read_time(now), leased.sent_at)


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
