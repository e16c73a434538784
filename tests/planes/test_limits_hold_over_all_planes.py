"""A queue's limits are the spine's: they hold over every plane together; a singleton's line lives on its plane."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_durable import Context, FlowQueue, workflow
from django_durable.dispatch.flow_queue import refresh
from django_durable.models import DispatchHint, Execution, SingletonPlace
from tests.driving import claim, drain, lease_of, run_claim
from tests.planes.conftest import NORTH, SPINE

pytestmark = pytest.mark.usefixtures("planes")

over_planes = FlowQueue("planes.limited", concurrency=3, rate=(4, timedelta(hours=1)))
lines = FlowQueue("planes.three", concurrency=3)


@workflow("planes.limited_one", queue=over_planes)
def limited(ctx: Context) -> None: ...


@workflow("planes.three_at_once", queue=lines)
def three(ctx: Context) -> None: ...


@workflow("planes.in_line", singleton=True)
def in_line(ctx: Context) -> None: ...


def test_the_holders_of_all_planes_count_together_and_tenants_take_turns() -> None:
    refresh(SPINE)
    for _ in range(5):
        for tenant in ("ann", "cid"):
            three.using(tenant=tenant).start()
    first = claim(10)
    assert len(first) == 3
    assert {claimed.row["tenant"] for claimed in first} == {"ann", "cid"}
    assert claim(10) == []
    for claimed in first:
        run_claim(claimed, lease_of(claimed))
    assert len(claim(10)) == 3


def test_the_starts_of_all_planes_count_together() -> None:
    refresh(SPINE)
    for tenant in ("ann", "cid", "ann", "cid", "ann", "cid"):
        limited.using(tenant=tenant).start()
    drain()
    assert DispatchHint.objects.using(SPINE).count() == 2
    assert claim(10) == []


def test_a_line_is_its_tenants_and_moves_on_where_the_tenant_lives() -> None:
    executions = [in_line.using(tenant=tenant).start() for tenant in ("ann", "ann", "cid")]
    assert [one.in_line for one in executions] == [False, True, False]
    assert SingletonPlace.objects.using(NORTH).count() + SingletonPlace.objects.using("south").count() == 3
    drain()
    for one in executions:
        assert Execution.objects.locate(one.pk).status == "completed"
