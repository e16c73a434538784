"""Events: published once for a tenant, waited for by any number of its executions.

Publisher and waiter share no lock. The waiter registers, commits, and looks after that, under its row's lock; the
publisher's event is committed, and after that its waiters are looked for and woken, each under its row's lock. So
an event is seen by the waiter's look, or the registration by the search. A publisher that dies between its commit
and the search leaves ``told_up_to`` behind, by which a sweep finds the event.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models import QuerySet

from django_durable.clock import read_now, sql_now
from django_durable.conf import config
from django_durable.engine.claimed import Claimed, as_utc
from django_durable.engine.contention import repeated
from django_durable.engine.journal import EXECUTION, fence
from django_durable.engine.locking import lock_execution
from django_durable.engine.messages import Letter, Posted, waits_for, wake
from django_durable.engine.tenancy import is_here
from django_durable.errors import ExecutionConflict, ExecutionNotFound, PlaneUnavailable, UndecodableValue
from django_durable.models import EventRow, EventTaken, EventWait, Execution, TenantEpoch
from django_durable.models.execution import TERMINAL
from django_durable.payloads import decode, encode
from django_durable.payloads.sameness import canonical
from django_durable.quiet import report
from django_durable.sql import Sql, build, columns, convert, execute, fetch, field_of, insert_row, value

EVENT, TAKEN, WAIT = (model._meta.db_table for model in (EventRow, EventTaken, EventWait))
READ = ("id", "payload", "published_at")
PAGE = 100
"""Events that a wait reads at a time."""

WAKES = 100
"""Waiters that one search wakes, at most; a sweep goes on from there."""

DELETED = 1_000
"""Events that one pass of the retention removes, at most."""

MARKED = 64
"""Items of a payload that get a mark. One of more items is read by every wait with a match."""

UNMARKED = "*"


def canonical_item(key: Any, item: Any) -> str:
    """One item of a dict in a form that is the same for equal items: equal in value and type."""
    return canonical(encode([key, item], where="match"))


def mark_of(text: str) -> str:
    """The mark of a canonical item."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def marks_of(payload: Any) -> str:
    """What is stored beside a payload, by which most events that do not match are passed over unread."""
    if not isinstance(payload, dict) or not payload:
        return ""
    if len(payload) > MARKED or config().codecs:  # a codec may encrypt: then no digest of a value is stored in clear
        return UNMARKED
    return " ".join(mark_of(canonical_item(key, item)) for key, item in payload.items())


# -- publishing --------------------------------------------------------------------------------------------------


def insert_event(using: str, tenant: str, name: str, encoded: str, marks: str, dedup_key: str | None) -> Posted:
    """Store an event; the first one for a repeated ``dedup_key``.

    Raises ``PlaneUnavailable`` while the tenant is leaving this plane, ``ExecutionConflict`` where the first event
    is one that this transaction's snapshot cannot see.
    """
    connection = connections[using]
    mark = None if dedup_key is None else _dedup_mark(tenant, name, dedup_key)
    values = {
        "tenant": tenant,
        "name": name,
        "payload": encoded,
        "dedup_mark": mark,
        "published_at": sql_now(connection),
        "marks": marks,
        "told_up_to": 0,
    }
    insert = insert_row(
        connection,
        EventRow,
        values,
        source=build("FROM (SELECT 1 AS one) AS one WHERE {here}", here=is_here(using, tenant)),
        on_conflict="ON CONFLICT (dedup_mark) DO NOTHING RETURNING id",
    )
    rows = fetch(using, insert)
    if rows:
        return Posted(int(rows[0][0]), is_new=True)
    known = None
    if mark is not None:
        known = EventRow.objects.using(using).filter(dedup_mark=mark).values_list("pk", flat=True).first()
    if known is not None:
        return Posted(known, is_new=False)
    if TenantEpoch.objects.using(using).filter(pk=tenant).exclude(moved_to="").exists():
        raise PlaneUnavailable(f"tenant {tenant!r} is being moved to another data plane; try again shortly")
    raise ExecutionConflict(f"the event with dedup_key {dedup_key!r} is not visible; retry the whole transaction")


def _dedup_mark(tenant: str, name: str, dedup_key: str) -> str:
    return hashlib.sha256("\x00".join((tenant, name, dedup_key)).encode()).hexdigest()


def note_started(using: str, event_id: int, chain_id: UUID, run_id: UUID) -> None:
    """The receipt of an event that started a run: that run does not take it once more."""
    receipt = {"event_id": event_id, "execution_id": chain_id, "run_id": run_id, "position": -1}
    source = Sql("FROM (SELECT 1 AS one) AS one WHERE 1 = 1")
    execute(
        using,
        insert_row(connections[using], EventTaken, receipt, source=source, on_conflict="ON CONFLICT DO NOTHING"),
    )


# -- telling those who wait --------------------------------------------------------------------------------------


def tell_waiters(using: str, event_id: int) -> int:
    """Wake those who wait for a committed event; how many. Repeating it does no harm."""
    event = EventRow.objects.using(using).filter(pk=event_id, told_up_to__isnull=False).first()
    if event is None or event.told_up_to is None:
        return 0
    page = list(_candidates(using, event).order_by("pk")[:WAKES])
    woken, last = 0, None if len(page) < WAKES else page[-1].pk
    for wait in reversed(page):
        try:
            woken += _fits(event.marks, wait.marks) and _wake_waiter(using, wait)
        except Exception as error:
            report(error, "execution %s was not told of event %s", wait.execution_id, event_id)
            last = wait.pk - 1  # the sweep begins again here
    EventRow.objects.using(using).filter(pk=event_id).update(told_up_to=last)
    return woken


def _candidates(using: str, event: EventRow) -> QuerySet[EventWait]:
    waits = EventWait.objects.using(using).filter(tenant=event.tenant, name=event.name, pk__gt=event.told_up_to)
    return waits if event.marks == UNMARKED else waits.filter(mark__in=["", *event.marks.split()])


def _fits(there: str, wanted: str) -> bool:
    return there == UNMARKED or set(wanted.split()) <= set(there.split())


def _wake_waiter(using: str, wait: EventWait) -> bool:
    def attempt() -> bool:
        with transaction.atomic(using=using):
            try:
                _now, row = lock_execution(using, wait.execution_id)
            except ExecutionNotFound:
                row = {"status": TERMINAL[0]}
            if row["status"] in TERMINAL:
                EventWait.objects.using(using).filter(pk=wait.pk).delete()
                return False
            waits = waits_for(row, channel_of(wait.name))
            if waits:
                wake(using, row)
            return waits

    return repeated(using, attempt)


def untold(using: str, most: int) -> list[int]:
    """Events whose waiters may not all have been told, the oldest first."""
    rows = EventRow.objects.using(using).filter(told_up_to__isnull=False)
    return list(rows.order_by("pk").values_list("pk", flat=True)[:most])


def forget_old_events(using: str) -> int:
    """Delete events that are older than EVENT_RETENTION, with their receipts, a batch at a time."""
    floor = read_now(using) - config().event_retention
    old = EventRow.objects.using(using).filter(published_at__lt=floor)
    ids = list(old.order_by("published_at").values_list("pk", flat=True)[:DELETED])
    if ids:
        with transaction.atomic(using=using):
            EventTaken.objects.using(using).filter(event__in=ids).delete()
            EventRow.objects.using(using).filter(pk__in=ids).delete()
    return len(ids)


# -- waiting -----------------------------------------------------------------------------------------------------


def channel_of(name: str) -> str:
    """What a published event wakes by; nothing is ever sent to it."""
    return f"event:{name}"


@dataclass(frozen=True, slots=True)
class Topic:
    """The events of one name, with all of ``match`` in their payload: a source of a wait.

    ``number`` is its place among the sources of its wait.
    """

    name: str
    match: Mapping[Any, str]
    number: int = 0

    @classmethod
    def of(cls, name: str, match: Mapping[Any, Any] | None, number: int = 0) -> Topic:
        """With the items of the match in canonical form."""
        return cls(name, {key: canonical_item(key, item) for key, item in (match or {}).items()}, number)

    @property
    def channel(self) -> str:
        """What wakes it."""
        return channel_of(self.name)

    def register(self, claim: Claimed, position: int) -> None:
        """So that an event which is committed after the look that follows finds this wait."""
        connection = connections[claim.using]
        marks = [] if config().codecs else [mark_of(text) for text in self.match.values()]
        row = {
            "execution_id": claim.id,
            "position": position,
            "number": self.number,
            "tenant": claim.row["tenant"],
            "name": self.name,
            "mark": marks[0] if marks else "",
            "marks": " ".join(marks),
        }
        source = build(f"FROM {EXECUTION} e WHERE {{fence}}", fence=fence(claim))
        execute(
            claim.using,
            insert_row(connection, EventWait, row, source=source, on_conflict="ON CONFLICT DO NOTHING"),
        )

    def oldest(self, claim: Claimed, before: datetime | None) -> Letter | None:
        """The oldest event that fits, that no run of this chain has taken, published since its first run began."""
        after = 0
        while True:
            rows = fetch(claim.using, self._page(claim, before, after))
            for raw in rows:
                row = convert(connections[claim.using], EventRow, READ, raw)
                if self._fits(row["payload"]):
                    return Letter(
                        row["id"], self.channel, row["payload"], as_utc(row["published_at"]), number=self.number
                    )
                after = row["id"]
            if len(rows) < PAGE:
                return None

    def consume(self, claim: Claimed, position: int, letter: Letter) -> None:
        """The receipt, at most one for an event and a chain."""
        chain_id = claim.row["chain_id"]
        receipt = {"event_id": letter.id, "execution_id": chain_id, "run_id": claim.id, "position": position}
        source = Sql("FROM (SELECT 1 AS one) AS one WHERE 1 = 1")
        execute(claim.using, insert_row(connections[claim.using], EventTaken, receipt, source=source))

    def close(self, claim: Claimed, position: int) -> Sql:
        """The wait at this position waits no more, for this topic and any other."""
        connection = connections[claim.using]
        return build(
            f"DELETE FROM {WAIT} WHERE execution_id = {{id}} AND position = {{position}}",
            id=value(connection, field_of(EventWait, "execution_id"), claim.id),
            position=value(connection, field_of(EventWait, "position"), position),
        )

    def _fits(self, payload: str) -> bool:
        if not self.match:
            return True
        try:
            found = decode(payload)
        except UndecodableValue:
            return False  # whoever asked for exactly this cannot tell; it stays for others
        return isinstance(found, dict) and all(
            key in found and canonical_item(key, found[key]) == text for key, text in self.match.items()
        )

    def _page(self, claim: Claimed, before: datetime | None, after: int) -> Sql:
        connection = connections[claim.using]
        chain = value(connection, field_of(Execution, "id"), claim.row["chain_id"])
        published = field_of(EventRow, "published_at")
        in_time = (
            Sql("")
            if before is None
            else build(" AND e.published_at <= {before}", before=value(connection, published, before))
        )
        return build(
            f"SELECT {columns(EventRow, READ, 'e.')} FROM {EVENT} e WHERE e.tenant = {{tenant}} AND e.name = {{name}}"
            " AND e.id > {after} AND e.published_at >= {kept}"
            f" AND e.published_at >= (SELECT MIN(c.created_at) FROM {EXECUTION} c WHERE c.id IN ({{chain}}, {{own}}))"
            f" AND NOT EXISTS (SELECT 1 FROM {TAKEN} t WHERE t.execution_id = {{chain}} AND t.event_id = e.id)"
            f"{{in_time}}{{marked}} ORDER BY e.id LIMIT {PAGE}",
            tenant=value(connection, field_of(EventRow, "tenant"), claim.row["tenant"]),
            name=value(connection, field_of(EventRow, "name"), self.name),
            after=value(connection, field_of(EventRow, "id"), after),
            kept=value(connection, published, claim.now() - config().event_retention),
            chain=chain,
            own=value(connection, field_of(Execution, "id"), claim.id),
            in_time=in_time,
            marked=_marked(self.match.values()),
        )


def _marked(wanted: Iterable[str]) -> Sql:
    """The marks of all items, or none at all: read from the row, without its payload."""
    likes = "".join(f" AND e.marks LIKE '%%{mark_of(text)}%%'" for text in wanted)
    return Sql(f" AND (e.marks = '{UNMARKED}' OR (1 = 1{likes}))") if likes else Sql("")
