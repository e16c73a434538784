"""Copy a tenant's rows from plane to plane, whole executions at a time, and prove that they arrived."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model

from django_durable.errors import DurableError
from django_durable.models import (
    ApprovalRequest,
    Checkpoint,
    DeadLetter,
    EventRow,
    EventTaken,
    EventWait,
    Execution,
    GatheredEvent,
    Join,
    Message,
    OperatorNote,
    SingletonPlace,
)

BATCH = 100
"""Executions that one transaction on the target copies."""

# Rows that hang on an execution, and whether their key is the plane's own counter and is given anew.
BELONGINGS: tuple[tuple[type[Model], bool], ...] = (
    (Checkpoint, False),
    (Message, True),
    (EventWait, True),
    (ApprovalRequest, True),
    (DeadLetter, True),
    (OperatorNote, False),
    (Join, False),
    (SingletonPlace, True),
)


def copy_tenant(source: str, target: str, tenant: str) -> int:
    """Copy every execution of a tenant with all that belongs to it; how many.

    Running it again is harmless, also for an operator who was overtaken: what goes on there already is left alone.
    """
    copied = 0
    for stretch in pages(source, tenant):
        with transaction.atomic(using=target):
            page = _clear(target, stretch)
            executions = list(Execution._base_manager.using(source).filter(pk__in=page).order_by("pk"))
            Execution._base_manager.using(target).bulk_create(executions)
            for model, renumbered in BELONGINGS:
                _copy_rows(source, target, model, page, renumbered=renumbered)
            verify(source, target, page)
        copied += len(page)
    copy_events(source, target, tenant)
    return copied


def pages(alias: str, tenant: str) -> Iterator[list[UUID]]:
    """The tenant's execution ids in key order, a batch at a time."""
    rows = Execution._base_manager.using(alias).filter(tenant=tenant).order_by("pk").values_list("pk", flat=True)
    after: UUID | None = None
    while page := list((rows.filter(pk__gt=after) if after else rows)[:BATCH]):
        yield page
        after = page[-1]


def _clear(target: str, stretch: Sequence[UUID]) -> list[UUID]:
    """Delete what an interrupted copy left of these executions; those that may be copied now."""
    rows = Execution._base_manager.using(target).filter(pk__in=stretch)
    copies = rows.filter(moving=True)
    copies._raw_delete(copies.db)
    alive = set(rows.values_list("pk", flat=True))
    page = [one for one in stretch if one not in alive]
    remove(target, page)
    return page


def remove(alias: str, page: Sequence[UUID]) -> None:
    """Delete whole executions with all that belongs to them."""
    for model, _renumbered in BELONGINGS:
        model._base_manager.using(alias).filter(execution_id__in=page).delete()
    rows = Execution._base_manager.using(alias).filter(pk__in=page)
    rows._raw_delete(rows.db)


def _copy_rows(source: str, target: str, model: type[Model], page: Sequence[UUID], *, renumbered: bool) -> None:
    rows = list(model._base_manager.using(source).filter(execution_id__in=page).order_by("pk"))
    for row in rows:
        if renumbered:
            row.pk = None
        row._state.adding = True
    model._base_manager.using(target).bulk_create(rows)


def copy_events(source: str, target: str, tenant: str) -> None:
    """Copy the tenant's events, who took which, and which wait for their run, under new numbers.

    A page of them is a transaction.
    """
    remove_gathered(target, tenant)
    remove_events(target, tenant)
    copied: dict[int, int] = {}
    for page in event_pages(source, tenant):
        with transaction.atomic(using=target):
            copied |= _copy_event_page(source, target, page)
    with transaction.atomic(using=target):
        _copy_gathered(source, target, tenant, copied)


def event_pages(alias: str, tenant: str) -> Iterator[list[int]]:
    """The numbers of the tenant's events in order, a batch at a time."""
    rows = EventRow.objects.using(alias).filter(tenant=tenant).order_by("pk").values_list("pk", flat=True)
    after = 0
    while page := list(rows.filter(pk__gt=after)[:BATCH]):
        yield page
        after = page[-1]


def remove_events(alias: str, tenant: str) -> None:
    """Delete the tenant's events, and who took which."""
    for page in event_pages(alias, tenant):
        with transaction.atomic(using=alias):
            EventTaken.objects.using(alias).filter(event_id__in=page).delete()
            EventRow.objects.using(alias).filter(pk__in=page).delete()


def _copy_event_page(source: str, target: str, page: Sequence[int]) -> dict[int, int]:
    events = list(EventRow.objects.using(source).filter(pk__in=page).order_by("pk"))
    takers = list(EventTaken.objects.using(source).filter(event_id__in=page).order_by("pk"))
    for event in events:
        event.pk = None
        event._state.adding = True
        # The waits have new numbers: who was told is to be told once more.
        event.told_up_to = None if event.told_up_to is None else 0
    numbers = dict(zip(page, (row.pk for row in EventRow.objects.using(target).bulk_create(events)), strict=True))
    for taker in takers:
        taker.pk = None
        taker._state.adding = True
        taker.event_id = numbers[taker.event_id]
    EventTaken.objects.using(target).bulk_create(takers)
    _verify_events(source, target, numbers)
    return numbers


def _verify_events(source: str, target: str, numbers: Mapping[int, int]) -> None:
    """Compare a page of events, and with each the executions that took it."""
    for model, column, own in ((EventRow, "pk__in", ("told_up_to",)), (EventTaken, "event_id__in", ("event_id",))):
        there = model._base_manager.using(source).filter(**{column: list(numbers)})
        here = model._base_manager.using(target).filter(**{column: list(numbers.values())})
        _refuse_difference(model, source, target, checksum(there, own), checksum(here, own))


def _copy_gathered(source: str, target: str, tenant: str, copied: Mapping[int, int]) -> None:
    """In their order; the event itself may be gone by now."""
    for row in GatheredEvent.objects.using(source).filter(tenant=tenant).order_by("pk"):
        row.pk, row.event_id = None, copied.get(row.event_id, 0)
        row.save(using=target, force_insert=True)


def remove_gathered(alias: str, tenant: str) -> None:
    """Delete what a tenant that has left has gathered here: it is gone on with where the tenant is now."""
    GatheredEvent.objects.using(alias).filter(tenant=tenant).delete()


def verify(source: str, target: str, page: Sequence[UUID]) -> None:
    """Compare counts and checksums of both sides. Raises ``DurableError`` naming the table."""
    tables: list[tuple[type[Model], str]] = [(Execution, "id__in")]
    tables += [(model, "execution_id__in") for model, _renumbered in BELONGINGS]
    for model, column in tables:
        rows = model._base_manager.filter(**{column: page})
        _refuse_difference(model, source, target, checksum(rows.using(source)), checksum(rows.using(target)))


def _refuse_difference(
    model: type[Model], source: str, target: str, there: tuple[int, str], here: tuple[int, str]
) -> None:
    if there != here:
        raise DurableError(
            f"{model._meta.db_table}: {here[0]} of {there[0]} rows arrived on {target!r}, or differ; the tenant"
            f" stays on {source!r}: run the move again"
        )


def checksum(rows: Iterable[Any], without: Sequence[str] = ()) -> tuple[int, str]:
    """How many rows, and a digest of their contents without the plane's own row numbers."""
    digests = []
    for row in rows:
        fields = [f for f in row._meta.concrete_fields if f.get_internal_type() != "BigAutoField"]
        text = "\x00".join(f"{f.attname}={getattr(row, f.attname)!r}" for f in fields if f.attname not in without)
        digests.append(hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest())
    return len(digests), hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()
