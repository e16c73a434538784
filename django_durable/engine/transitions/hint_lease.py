"""The lease of hints: who may take which, and one atomic update that does.

A lease is only half of a claim: the plane's row is the truth, and what it says of the work is looked at next.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import UUID

from django.db import connections

from django_durable.clock import sql_after, sql_until_now
from django_durable.conf import config
from django_durable.dispatch.hints import QUEUES
from django_durable.dispatch.hints import TABLE as HINT
from django_durable.models import DispatchHint
from django_durable.sql import Sql, assignments, build, convert, execute, fetch, field_of, is_postgres, join, value

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
    sent_at: float
    """Monotonic time before the lease was asked for: its local end is never later than the real one."""
    plane: str = ""
    position: int = -1
    item: int = -1
    kind: int = DispatchHint.Kind.TURN


def any_due(using: str, terms: Terms, *, planes: Sql | None = None) -> bool:
    """Whether there is anything to lease, asked without a lock."""
    condition = wanted(using, terms, planes=planes)
    return bool(fetch(using, build(f"SELECT 1 FROM {HINT} h WHERE {{wanted}} LIMIT 1", wanted=condition)))


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
        leased=lease_columns(using, terms, fresh),
        first=_first_due(using, terms, planes),
    )
    names = ["id", "token", "execution_id", "revision", "epoch", "plane", "position", "item"]
    sent_at = time.monotonic()
    rows = (convert(connection, DispatchHint, names, row) for row in fetch(using, statement))
    return [Odd(hint_id=row.pop("id"), sent_at=sent_at, **row) for row in rows]


def still_leased(spine: str, odd: Odd) -> bool:
    """Whether the hint is still ours, now that the execution is locked: a slow claimer may have been overtaken."""
    connection = connections[spine]
    statement = build(
        f"UPDATE {HINT} SET due_at = {{due}} WHERE id = {{id}} AND token = {{token}}",
        due=sql_after(connection, config().lease_seconds),
        id=value(connection, field_of(DispatchHint, "id"), odd.hint_id),
        token=value(connection, field_of(DispatchHint, "token"), odd.token),
    )
    return bool(execute(spine, statement))


def runnable(using: str, terms: Terms, planes: Sql | None) -> Sql:
    """The condition on a hint that it is due and that this worker knows its code, whichever queue it is in."""
    connection = connections[using]

    def bound(name: str, item: object) -> Sql:
        return value(connection, field_of(DispatchHint, name), item)

    parts = [
        planes or Sql("h.plane = ''"),
        Sql(f"h.state = {int(terms.state)}"),
        build("h.due_at <= {now}", now=sql_until_now(connection)),
        build("h.definition IN ({known})", known=join(", ", [bound("definition", k) for k in terms.known])),
    ]
    if terms.state == DispatchHint.State.BLOCKED:
        parts.append(build("h.avoid <> {code}", code=bound("avoid", terms.code)))
    return join(" AND ", parts)


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

    # Who claims past the limits leaves alone what has any, whatever this process knows of them.
    parts = [
        runnable(using, terms, planes),
        Sql(f"h.kind = {int(terms.kind)} AND h.queue NOT IN (SELECT q.name FROM {QUEUES} q)"),
    ]
    if terms.hint_id is not None:
        parts.append(build("h.id = {id}", id=bound("id", terms.hint_id)))
    elif queue is not None and priority is not None:
        parts += [build("h.queue = {queue}", queue=queue), build("h.priority = {level}", level=priority)]
    else:
        # Every level by name: a range of the index ends at the first column that is left open.
        parts.append(build("h.queue IN ({q})", q=join(", ", [bound("queue", q) for q in terms.queues])))
        parts.append(Sql(f"h.priority IN ({', '.join(map(str, LEVELS))})"))
    return join(" AND ", parts)


def lease_columns(using: str, terms: Terms, token: Sql | UUID) -> Sql:
    """What a claim writes to the hint."""
    connection = connections[using]
    changes = {
        "owner": terms.worker,
        "token": token,
        "due_at": sql_after(connection, terms.lease_seconds),
        "state": DispatchHint.State.LIVE,
    }
    return assignments(connection, DispatchHint, changes)


def levels_of(using: str, terms: Terms) -> Sql:
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


def limit_of(terms: Terms) -> Sql:
    """The number itself: a plan that is made for any number would read and sort everything that is due."""
    return Sql(str(int(terms.limit)))


def _first_due(using: str, terms: Terms, planes: Sql | None) -> Sql:
    """The ids of the first due hints, by level and age; on PostgreSQL one range a level, past what is locked."""
    limit = limit_of(terms)
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
        levels=levels_of(using, terms),
        wanted=wanted(using, terms, planes=planes, **level),
        limit=limit,
    )
