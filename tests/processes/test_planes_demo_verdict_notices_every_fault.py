"""The planes' checks are worth something: each fault, put into healthy evidence, breaks exactly its own check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from testproject.demo.evidence import Evidence, Progress
from testproject.demo.planes_table import planes_table
from testproject.demo.planes_verdict import judge_planes
from testproject.demo.story import Move, Story
from testproject.shop.provider import Ledger

DOWN = datetime(2026, 1, 1, tzinfo=UTC)
OUTAGE = timedelta(seconds=10)
UP = DOWN + OUTAGE
HOMES = {"ann": "north", "bob": "south", "cid": "west", "dan": "west"}
STOPPED = frozenset({"bob", "dan"})


def order(number: int, tenant: str, finished_at: datetime) -> Progress:
    return Progress(
        order_id=number,
        order_status="shipped",
        total=Decimal("1.00"),
        execution_id=UUID(int=number),
        execution_status="completed",
        review={},
        points=[],
        tenant=tenant,
        database=HOMES[tenant],
        finished_at=finished_at,
    )


@pytest.fixture
def evidence() -> Evidence:
    second, later = DOWN + timedelta(seconds=1), UP + timedelta(seconds=1)
    orders = []
    for place, tenant in enumerate(sorted(HOMES)):
        first = DOWN - timedelta(seconds=1)
        times = [first, later if tenant in STOPPED else second, later]
        orders += [order(10 * place + number, tenant, at) for number, at in enumerate(times)]
    charges = [{"order_id": one.order_id, "amount": "1.00"} for one in orders]
    ledger = Ledger(charges=charges, refunds=[], calls=[])
    return Evidence(orders=orders, bodies=[], ledger=ledger, messages=[], kills=[], findings=[], losses=[])


@pytest.fixture
def story() -> Story:
    return Story(
        placements=HOMES,
        stopped="south",
        stopped_tenants=STOPPED,
        down_at=DOWN,
        up_at=UP,
        refused=2,
        moves={
            "cid": Move(source="north", target="west", unfinished=1),
            "dan": Move(source="south", target="west", unfinished=2),
        },
        leftovers=[],
    )


def with_order(evidence: Evidence, at: int, **changes: object) -> Evidence:
    changed = replace(evidence.orders[at], **changes)  # type: ignore[arg-type]
    return replace(evidence, orders=[*evidence.orders[:at], changed, *evidence.orders[at + 1 :]])


def with_move(story: Story, **changes: object) -> Story:
    moved = replace(story.moves["cid"], **changes)  # type: ignore[arg-type]
    return replace(story, moves={**story.moves, "cid": moved})


Fault = Callable[[Evidence, Story], tuple[Evidence, Story]]
FAULTS: list[tuple[str, Fault, str]] = [
    (
        "on another plane",
        lambda e, s: (with_order(e, 0, database="south"), s),
        "order 0 of ann is on south, not on north",
    ),
    ("lost", lambda e, s: (replace(e, orders=e.orders[1:]), s), "ann has 2 executions, not 3"),
    ("twice", lambda e, s: (replace(e, orders=[*e.orders, e.orders[0]]), s), "ann has 4 executions, not 3"),
    (
        "of nobody",
        lambda e, s: (replace(e, orders=[*e.orders, replace(e.orders[0], tenant="eve")]), s),
        "is of tenant 'eve', who is placed nowhere",
    ),
    (
        "not down for long",
        lambda e, s: (e, replace(s, up_at=UP - timedelta(seconds=1))),
        "it was down for less than 10 s",
    ),
    (
        "not down at all",
        lambda e, s: (with_order(e, 5, finished_at=DOWN + timedelta(seconds=1)), s),
        "1 executions of bob ended in that time",
    ),
    ("never refused", lambda e, s: (e, replace(s, refused=0)), "0 orders were refused, of 2 tenants"),
    ("a healthy tenant stood still", lambda e, s: (with_order(e, 1, finished_at=UP + OUTAGE), s), "-- ann"),
    ("nobody moved", lambda e, s: (e, replace(s, moves={"cid": s.moves["cid"]})), "only 1 have moved"),
    ("moved elsewhere", lambda e, s: (e, with_move(s, target="east")), "cid is placed on west"),
    ("moved idle", lambda e, s: (e, with_move(s, unfinished=0)), "cid had nothing under way when it moved"),
    ("left on its way", lambda e, s: (e, replace(s, leftovers=["2 dispatch hints"])), "2 dispatch hints"),
]


def broken(evidence: Evidence, story: Story) -> list[str]:
    return [str(check) for check in judge_planes(evidence, story, outage=OUTAGE) if not check.holds]


def test_healthy_evidence_holds(evidence: Evidence, story: Story) -> None:
    assert broken(evidence, story) == []
    told = [str(check) for check in judge_planes(evidence, story, outage=OUTAGE)]
    assert "(2 executions of 2 tenants)" in told[2]


@pytest.mark.parametrize(("fault", "text"), [pytest.param(fault, text, id=name) for name, fault, text in FAULTS])
def test_a_fault_breaks_its_own_check(evidence: Evidence, story: Story, fault: Fault, text: str) -> None:
    (line,) = broken(*fault(evidence, story))
    assert line.startswith("FAILED  ") and text in line


def test_the_table_has_a_line_for_each_tenant_and_each_plane(evidence: Evidence, story: Story) -> None:
    lines = planes_table(evidence, story).splitlines()
    assert lines[2].split() == ["ann", "north", "3", "3", "1", "0", "3"]
    assert lines[5].split() == ["dan", "south", ">", "west", "3", "3", "0", "0", "3"]
    assert lines[-1].split() == ["2", "tenants", "west", "6", "6", "1", "0", "6"]
