"""publish: tell a tenant's executions that something has happened, whoever of them wants to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from django_durable.authoring.gathering import gather, start_group
from django_durable.authoring.one_transaction import in_one_transaction
from django_durable.authoring.place import refuse_in_body
from django_durable.authoring.subscription import Subscription, subscribers
from django_durable.authoring.workflow import Workflow
from django_durable.conf import config
from django_durable.engine.events import insert_event, marks_of, note_started, tell_waiters
from django_durable.errors import ExecutionConflict, ExecutionNotFound, TenantRequired
from django_durable.models import Execution
from django_durable.models.columns import check_name
from django_durable.payloads import decode, encode
from django_durable.planes.selection import plane_alias
from django_durable.quiet import report

__all__ = ["apublish", "publish"]


def publish(name: str, payload: Any = None, *, tenant: str | None = None, dedup_key: str | None = None) -> int:
    """Publish an event to the executions of one tenant, in the caller's transaction; the event's id.

    Each execution that waits for it takes it once, also one that comes to its wait later, for as long as
    ``EVENT_RETENTION``; each workflow that subscribed with ``on_event`` is started, in the same transaction; with
    ``debounce`` or ``batch`` it is started later, for what is stored with the event. A
    repeated ``dedup_key`` publishes nothing and returns the first event's id.

    Raises ``UnserializableValue``, ``PayloadTooLarge``, ``TenantRequired``, ``WrongDatabase``, and what a
    subscription's ``key`` or ``args`` or its start raises: then nothing is published.
    """
    refuse_in_body("publish()", "put it into a step")
    check_name(name, "event name")
    if dedup_key is not None:
        check_name(dedup_key, "dedup_key")
    if not tenant and config().untenanted == "refuse":
        raise TenantRequired(f"event {name!r} was published without a tenant; pass tenant=…")
    encoded = encode(payload, where=f"payload of event {name!r}")
    alias = plane_alias(tenant or "")

    def post() -> int:
        posted = insert_event(alias, tenant or "", name, encoded, marks_of(payload), dedup_key)
        if posted.is_new:
            for workflow, subscription in subscribers(name):
                begin = _gather if subscription.gathers else _start
                begin(alias, workflow, subscription, decode(encoded), tenant, posted.id)
            # After the commit, when it can be seen that nobody who waits is missed. A sweep does it otherwise.
            transaction.on_commit(lambda: _tell(alias, posted.id), using=alias)
        return posted.id

    return in_one_transaction(alias, post)


def _tell(alias: str, event_id: int) -> None:
    """The event is published: whatever goes wrong from here on is for the sweep."""
    try:
        tell_waiters(alias, event_id)
    except Exception as error:
        report(error, "those who wait for event %s could not be told yet", event_id)


async def apublish(name: str, payload: Any = None, *, tenant: str | None = None, dedup_key: str | None = None) -> int:
    """``publish`` for async code."""
    return await sync_to_async(publish)(name, payload, tenant=tenant, dedup_key=dedup_key)


def _gather(
    alias: str,
    workflow: Workflow[..., Any],
    subscription: Subscription,
    payload: Any,
    tenant: str | None,
    event_id: int,
) -> None:
    """A full batch starts after the commit, when it can be seen that it is full; what is due later, by a sweep."""
    mark = gather(alias, workflow, subscription, payload, tenant or "", event_id)
    if subscription.portion is not None:
        transaction.on_commit(lambda: _start_full(alias, mark), using=alias)


def _start_full(alias: str, mark: str) -> None:
    """The event is published: whatever goes wrong from here on is for the sweep."""
    try:
        start_group(alias, mark)
    except Exception as error:
        report(error, "a batch of events could not be started yet (%s)", mark)


def _start(
    alias: str,
    workflow: Workflow[..., Any],
    subscription: Subscription,
    payload: Any,
    tenant: str | None,
    event_id: int,
) -> None:
    args, kwargs = subscription.arguments(payload, takes_any=bool(workflow.signature.parameters))
    key = subscription.key(payload) if subscription.key is not None else None
    prepared = workflow.using(key=key, tenant=tenant or None)
    execution = _started(lambda: prepared.start(*args, **kwargs), lambda: workflow.get(str(key), tenant=tenant), key)
    if execution.is_new:
        note_started(alias, event_id, execution.chain_id, execution.pk)


def _started(
    start: Callable[[], Execution[Any]], existing: Callable[[], Execution[Any]], key: str | None
) -> Execution[Any]:
    """One run a key, whatever later events with that key say: another input is no conflict here."""
    try:
        return start()
    except ExecutionConflict:
        if key is None:
            raise
        try:
            return existing()
        except ExecutionNotFound:
            pass
        raise
