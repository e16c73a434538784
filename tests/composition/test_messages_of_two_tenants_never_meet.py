"""The same names in two tenants, on one plane and on two: each takes its own, and a publisher reaches its own."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from django_durable import Context, Execution, PlaneUnavailable, TenantRequired, WrongDatabase, workflow
from django_durable import complete_callback as complete
from django_durable.events import publish
from django_durable.models import ApprovalRequest, Checkpoint, EventRow, EventTaken, EventWait, TenantEpoch
from django_durable.operators.move.tenant import move_tenant
from django_durable.payloads import decode
from tests.driving import drain
from tests.planes.conftest import NORTH, SOUTH, SPINE, planes, three_databases

__all__ = ["planes", "three_databases"]

pytestmark = pytest.mark.usefixtures("planes")


@workflow("composition.tenants_listener")
def listener(ctx: Context) -> Any:
    return ctx.wait_for_event("sold", {"order": 5})["by"]


@workflow("composition.tenants_callback")
def callback(ctx: Context) -> Any:
    return ctx.create_callback().wait()


@workflow("composition.tenants_approval")
def approval(ctx: Context) -> str:
    return ctx.wait_for_approval("legal").actor


@workflow("composition.tenants_starter")
def starter(ctx: Context, payload: Any) -> Any:
    return [ctx.tenant, payload]


def result(execution: Execution[Any]) -> Any:
    found = Execution.objects.locate(execution.pk)
    return found.output if found.status == "completed" else found.status


def test_an_event_reaches_the_executions_of_its_tenant_alone() -> None:
    executions = {tenant: listener.using(tenant=tenant).start() for tenant in ("ann", "bob", "cid")}
    drain()
    publish("sold", {"order": 5, "by": "ann"}, tenant="ann")
    drain()
    assert {tenant: result(one) for tenant, one in executions.items()} == {
        "ann": "ann",
        "bob": "waiting",
        "cid": "waiting",
    }
    publish("sold", {"order": 5, "by": "cid"}, tenant="cid")
    drain()
    assert (result(executions["bob"]), result(executions["cid"])) == ("waiting", "cid")
    assert [EventRow.objects.using(alias).count() for alias in (SPINE, NORTH, SOUTH)] == [0, 1, 1]


def test_the_same_deduplication_key_in_two_tenants_is_two_events() -> None:
    publish("sold", 1, tenant="ann", dedup_key="one")
    publish("sold", 1, tenant="bob", dedup_key="one")
    assert EventRow.objects.using(NORTH).count() == 2


def test_an_event_starts_its_subscribers_for_its_tenant_on_its_plane() -> None:
    starter.on_event("opened")
    try:
        publish("opened", 1, tenant="cid")
    finally:
        starter.subscriptions.clear()
    drain()
    assert Execution.objects.using(SOUTH).get().output == ["cid", 1]
    assert not Execution.objects.using(NORTH).exists()


def test_an_event_needs_a_tenant_and_its_tenants_transaction() -> None:
    with pytest.raises(TenantRequired):
        publish("sold", 1)
    with pytest.raises(WrongDatabase), transaction.atomic(using=SPINE):
        publish("sold", 1, tenant="ann")
    assert not EventRow.objects.using(NORTH).exists()


def test_a_callback_and_an_approval_find_their_plane_by_the_execution() -> None:
    called, asked = callback.using(tenant="ann").start(), approval.using(tenant="cid").start()
    drain()
    token = decode(Checkpoint.objects.using(NORTH).get(kind="callback").encoded_output or "null")
    assert complete(token, 7) is True
    assert ApprovalRequest.objects.using(SOUTH).open().get().name == "legal"
    assert asked.decide("legal", approved=True, actor="eve") is True
    drain()
    assert (result(called), result(asked)) == (7, "eve")


def test_nothing_is_published_for_a_tenant_that_is_leaving() -> None:
    # PostgreSQL's presence has left a row there; SQLite needs none.
    TenantEpoch.objects.using(NORTH).update_or_create(tenant="ann", defaults={"epoch": 1, "moved_to": "south"})
    with pytest.raises(PlaneUnavailable):
        publish("sold", 1, tenant="ann")
    assert not EventRow.objects.using(NORTH).exists()


def test_waits_requests_events_and_receipts_move_with_their_tenant() -> None:
    listening, asked, token_of = (flow.using(tenant="ann").start() for flow in (listener, approval, callback))
    drain()
    publish("sold", {"order": 6, "by": "nobody"}, tenant="ann")
    token = decode(Checkpoint.objects.using(NORTH).get(kind="callback").encoded_output or "null")
    move_tenant("ann", "south", actor="op")
    assert [EventWait.objects.using(alias).count() for alias in (NORTH, SOUTH)] == [0, 1]
    publish("sold", {"order": 5, "by": "ann"}, tenant="ann")
    complete(token, 8)
    Execution.objects.locate(asked.pk).decide("legal", approved=True, actor="eve")
    drain()
    assert [result(one) for one in (listening, asked, token_of)] == ["ann", "eve", 8]
    assert EventTaken.objects.using(SOUTH).count() == 1
    assert EventRow.objects.using(SOUTH).count() == 2
