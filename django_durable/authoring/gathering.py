"""Gathering: events of a subscription with ``debounce`` or ``batch`` wait as rows for the run that they start.

A publisher only inserts. Whoever starts a run deletes its rows first, in the same transaction: of any number that
try, exactly one finds them. ``key`` and ``args`` are asked by the publisher; nothing here runs code of the project
but the decoders of its values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import InterfaceError, OperationalError, connections, transaction
from django.db.models import F, Max, Min, Q, QuerySet

from django_durable.authoring.portion import LARGEST
from django_durable.authoring.registry import find_workflow
from django_durable.authoring.subscription import Subscription
from django_durable.authoring.workflow import Workflow
from django_durable.clock import read_now, sql_after, sql_now
from django_durable.durations import seconds
from django_durable.engine.contention import repeated
from django_durable.engine.transitions.start import chain_mark, start
from django_durable.errors import ExecutionConflict, PayloadTooLarge, PlaneUnavailable, UnknownTenant, UnknownWorkflow
from django_durable.models import EventTaken, Execution, GatheredEvent
from django_durable.models.columns import check_name
from django_durable.models.execution import TERMINAL
from django_durable.payloads import decode, encode
from django_durable.planes.selection import plane_alias
from django_durable.quiet import report
from django_durable.sql import execute, insert_row, is_postgres

__all__ = ["gather", "is_held", "start_group"]

LOOK_AGAIN = timedelta(seconds=5)
"""When a group is looked at again whose key has a live run."""

AFTER_FAILURE = timedelta(minutes=1)
"""The same, of a group that could not be started."""


class _Held(Exception):
    """The key has a live run: what has gathered stays for the next one."""


# -- publishing --------------------------------------------------------------------------------------------------


def gather(
    using: str, workflow: Workflow[..., Any], subscription: Subscription, payload: Any, tenant: str, event_id: int
) -> str:
    """Store an event for the run that it starts with others, in the publisher's transaction; its group's mark.

    Raises what the start would raise for this event alone: what is stored can be started.
    """
    key = subscription.key(payload) if subscription.key is not None else None
    if key is not None:
        check_name(key, "key")
    mark = _mark(tenant, workflow.name, subscription.event, key)
    connection = connections[using]
    debounce, portion = subscription.debounce, subscription.portion
    cut_after = None if debounce is None or debounce.at_most is None else seconds(debounce.at_most, name="at_most")
    row = {
        "mark": mark,
        "event_id": event_id,
        "tenant": tenant,
        "workflow": workflow.name,
        "key": key,
        "encoded": _encoded(workflow, subscription, payload),
        "size": 0 if portion is None else portion.size,
        "cut_at": None if cut_after is None else sql_after(connection, cut_after),
        "due_at": sql_after(connection, seconds(_patience(subscription), name="debounce")),
        "failures": 0,
        "published_at": sql_now(connection),
    }
    execute(using, insert_row(connection, GatheredEvent, row))
    return mark


def _patience(subscription: Subscription) -> Any:
    if subscription.debounce is not None:
        return subscription.debounce.quiet
    assert subscription.portion is not None
    return subscription.portion.window


def _encoded(workflow: Workflow[..., Any], subscription: Subscription, payload: Any) -> str:
    if subscription.portion is None:
        args, kwargs = subscription.arguments(payload, takes_any=bool(workflow.signature.parameters))
        return _input(workflow, *args, **kwargs)
    item = payload if subscription.args is None else subscription.args(payload)
    _input(workflow, [item])
    return encode(item, where=f"event {subscription.event!r} for workflow {workflow.name!r}")


def _mark(tenant: str, workflow: str, event: str, key: str | None) -> str:
    parts = (tenant, workflow, event, *(() if key is None else (key,)))
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


# -- starting ----------------------------------------------------------------------------------------------------


def start_group(using: str, mark: str) -> int:
    """Start what is due of a group's events; how many runs. Repeating it does no harm, nor doing it twice at once."""
    started = 0
    try:
        while _start_next(using, mark):
            started += 1
    except (_Held, ExecutionConflict, PlaneUnavailable, UnknownTenant, UnknownWorkflow):
        _postpone(using, mark, LOOK_AGAIN)
    except (OperationalError, InterfaceError):  # the database, not these events: they stay due
        raise
    except Exception as error:
        report(error, "events that have gathered (%s) could not start their run", mark)
        _postpone(using, mark, AFTER_FAILURE, failed=1)
    return started


def _start_next(using: str, mark: str) -> bool:
    first = GatheredEvent.objects.using(using).filter(mark=mark).order_by("pk").first()
    if first is None:
        return False
    if first.tenant and plane_alias(first.tenant) != using:
        raise _Held  # a copy made by a move: it counts where the tenant is placed
    return _start_portion(using, mark) if first.size else _start_last(using, mark)


def _start_last(using: str, mark: str) -> bool:
    """Debounced: the last event's run, once nothing has come for long enough. What it has replaced goes."""
    rows = GatheredEvent.objects.using(using).filter(mark=mark)

    def attempt() -> bool:
        with transaction.atomic(using=using):
            _write_first(rows)
            now, last = read_now(using), rows.order_by("pk").last()
            if last is None:
                return False
            moments = rows.aggregate(quiet=Max("due_at"), cut=Min("cut_at"))
            if min(moment for moment in moments.values() if moment is not None) > now:
                _forget_replaced(rows, last, moments["cut"])
                return False
            if not rows.filter(pk=last.pk)._raw_delete(using):
                return False  # somebody else has started it
            rows.filter(pk__lt=last.pk)._raw_delete(using)
            _start(using, last, last.encoded)
            return True

    return repeated(using, attempt)


def _write_first(rows: QuerySet[GatheredEvent]) -> None:
    """On SQLite a transaction takes the write lock before it reads; elsewhere the deletion decides."""
    if not is_postgres(connections[rows.db]):
        rows.update(size=F("size"))


def _forget_replaced(rows: QuerySet[GatheredEvent], last: GatheredEvent, cut: datetime | None) -> None:
    """A stream without a pause leaves one row; it remembers where the first one is to be cut."""
    if rows.filter(pk__lt=last.pk)._raw_delete(rows.db):
        rows.filter(pk=last.pk).update(cut_at=cut)


def _start_portion(using: str, mark: str) -> bool:
    """Batched: the first events' run, once there are enough, or the first has waited for long enough."""
    rows = GatheredEvent.objects.using(using).filter(mark=mark)
    share = 1

    def attempt() -> bool:
        with transaction.atomic(using=using):
            _write_first(rows)
            now, first = read_now(using), rows.order_by("pk").first()
            if first is None:
                return False
            portion = list(rows.order_by("pk")[: first.size])
            if len(portion) < first.size and min(row.due_at for row in portion) > now:
                return False
            portion = portion[: max(1, len(portion) // share)]
            if rows.filter(pk__in=[row.pk for row in portion])._raw_delete(using) != len(portion):
                transaction.set_rollback(True, using=using)
                return False  # somebody else has started some of them
            _start(using, first, _list_of(first, portion), portion)
            return True

    while True:
        try:
            return repeated(using, attempt)
        except PayloadTooLarge:  # one event fits: that was seen when it was published
            if share > LARGEST:
                raise
            share *= 2


def _list_of(first: GatheredEvent, portion: Sequence[GatheredEvent]) -> str:
    return _input(find_workflow(first.workflow), [decode(row.encoded) for row in portion])


def _input(workflow: Workflow[..., Any], *args: Any, **kwargs: Any) -> str:
    """The input of a start, as it is stored."""
    bound = workflow.signature.bind(*args, **kwargs)
    return encode(dict(bound.arguments), where=f"input of workflow {workflow.name!r}")


def _start(using: str, row: GatheredEvent, encoded: str, taken: Sequence[GatheredEvent] = ()) -> None:
    """Start the run in the newest version: the key's next one, where it has a key. Raises ``_Held``."""
    if is_held(using, row):
        raise _Held
    workflow = find_workflow(row.workflow).using(key=row.key, tenant=row.tenant or None, on_conflict="restart")
    execution = start(using, workflow.order_of_input(encoded, row.tenant, lambda: read_now(using)))
    if not execution.is_new:
        raise _Held
    receipts = [
        EventTaken(event_id=one.event_id, execution_id=execution.chain_id, run_id=execution.pk, position=-1)
        for one in taken or [row]
    ]
    EventTaken.objects.using(using).bulk_create(receipts, ignore_conflicts=True)


def is_held(using: str, row: GatheredEvent) -> bool:
    """Whether the key of these events has a live run: they wait for its end."""
    if row.key is None:
        return False
    current = Execution._base_manager.using(using).filter(current_key=chain_mark(row.tenant, row.workflow, row.key))
    return current.exclude(status__in=TERMINAL).exists()


def _postpone(using: str, mark: str, length: timedelta, *, failed: int = 0) -> None:
    """Its events are not due before that; others come to their turn meanwhile."""
    rows = GatheredEvent.objects.using(using).filter(mark=mark)
    first = rows.order_by("pk").values_list("pk", flat=True).first()
    if first is not None:
        later = read_now(using) + length
        due = rows.filter(Q(due_at__lte=later) | Q(pk=first))
        due.update(due_at=later, failures=F("failures") + failed)
