"""The demo's checks are worth something: each fault, put into healthy evidence, breaks exactly its own check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import pytest

from testproject.demo.body_log import Body
from testproject.demo.evidence import Evidence, Point, Progress
from testproject.demo.fleet import Deed
from testproject.demo.killer import Kill
from testproject.demo.table import summary, table
from testproject.demo.verdict import judge
from testproject.shop.provider import Ledger

STEPS = ["reserve_stock", "charge", "mark_paid", "send_receipt", "sleep", "reviewed", "ship", "announce_parcel"]
KINDS = {"sleep": "sleep", "reviewed": "signal"}
SUBJECTS = ["Reserve for order {}", "Receipt for order {}", "Order {} is on its way"]
WORKER, DEAD = 100, 200


def body(order_id: int, position: int, **changes: object) -> Body:
    healthy = Body(
        number=order_id * 100 + position,
        execution_id=UUID(int=order_id),
        position=position,
        step=STEPS[position],
        pid=WORKER,
        parent_pid=1,
        checkpointed=False,
        outcome="returned",
    )
    return replace(healthy, **changes)  # type: ignore[arg-type]


def order(order_id: int) -> Progress:
    points = [
        Point(position=position, kind=KINDS.get(name, "step"), name=name, status="completed")
        for position, name in enumerate(STEPS)
    ]
    return Progress(
        order_id=order_id,
        order_status="shipped",
        total=Decimal("12.50"),
        execution_id=UUID(int=order_id),
        execution_status="completed",
        review={"order": order_id},
        points=points,
    )


@pytest.fixture
def healthy() -> Evidence:
    orders = [order(1), order(2)]
    steps = [position for position, name in enumerate(STEPS) if name not in KINDS]
    cut = [body(1, position, number=position, pid=DEAD + position, outcome="") for position in steps[:5]]
    return Evidence(
        orders=orders,
        bodies=[*cut, *[body(one.order_id, position) for one in orders for position in steps]],
        ledger=Ledger(
            charges=[{"order_id": one.order_id, "amount": "12.50"} for one in orders], refunds=[], calls=[]
        ),
        messages=[{"subject": text.format(one.order_id)} for one in orders for text in SUBJECTS],
        kills=[Kill(body=one, deed=Deed(pid=one.pid, text="")) for one in cut],
        findings=[],
        losses=[],
    )


def broken(evidence: Evidence, orders: int = 2) -> list[str]:
    """Each check that does not hold: its claim up to the first number or colon, and what was found."""
    return [str(check) for check in judge(evidence, orders=orders) if not check.holds]


def with_charges(evidence: Evidence, charges: list[dict[str, object]]) -> Evidence:
    return replace(evidence, ledger=replace(evidence.ledger, charges=charges))


def with_order(evidence: Evidence, **changes: object) -> Evidence:
    changed = replace(evidence.orders[0], **changes)  # type: ignore[arg-type]
    return replace(evidence, orders=[changed, *evidence.orders[1:]])


Fault = Callable[[Evidence], Evidence]
FAULTS: list[tuple[str, Fault, str]] = [
    ("order left", lambda e: with_order(e, order_status="paid"), "order 1 is paid and its execution completed"),
    ("stuck", lambda e: with_order(e, execution_status="running"), "order 1 is shipped and its execution running"),
    (
        "charged twice",
        lambda e: with_charges(e, [*e.ledger.charges, e.ledger.charges[0]]),
        "order 1 was charged 2 times",
    ),
    ("not charged", lambda e: with_charges(e, e.ledger.charges[1:]), "order 1 was charged 0 times"),
    ("wrong sum", lambda e: with_order(e, total=Decimal("12.60")), "order 1 costs 12.60 and has paid 12.50"),
    (
        "charged for nothing",
        lambda e: with_charges(e, [*e.ledger.charges, {"order_id": 3, "amount": "1.00"}]),
        "order 3 was charged and does not exist",
    ),
    (
        "mail twice",
        lambda e: replace(e, messages=[*e.messages, e.messages[0]]),
        "'Reserve for order 1' was sent 2 times",
    ),
    ("mail lost", lambda e: replace(e, messages=e.messages[1:]), "'Reserve for order 1' was sent 0 times"),
    ("step lost", lambda e: with_order(e, points=e.orders[0].points[2:]), "order 1 has positions [2, 3, 4, 5, 6, 7]"),
    ("no sleep", lambda e: with_order(e, points=without_sleep(e)), "order 1 has {'step': 6, 'signal': 1}"),
    ("other's review", lambda e: with_order(e, review={"order": 2}), "order 1 has got the review {'order': 2}"),
    (
        "step repeated",
        lambda e: replace(e, bodies=[*e.bodies, body(1, 1, checkpointed=True)]),
        "charge of execution 00000000-0000-0000-0000-000000000001, position 1",
    ),
    (
        "result out of nothing",
        lambda e: replace(e, bodies=[one for one in e.bodies if (one.execution_id.int, one.position) != (2, 1)]),
        "charge of order 2",
    ),
    (
        "a kill too late",
        lambda e: replace(e, bodies=[replace(e.bodies[0], outcome="returned"), *e.bodies[1:]]),
        "only 4",
    ),
    (
        "an unknown death",
        lambda e: replace(e, bodies=[*e.bodies, body(2, 1, pid=300, outcome="")]),
        "charge in process 300, which nobody had killed",
    ),
    (
        "a worker that does not stop",
        lambda e: replace(e, losses=["process 100 did not stop"]),
        "process 100 did not stop",
    ),
    ("a finding", lambda e: replace(e, findings=["error: lapsed-lease (1)"]), "error: lapsed-lease (1)"),
]


def without_sleep(evidence: Evidence) -> list[Point]:
    return [
        point if point.kind != "sleep" else replace(point, status="pending") for point in evidence.orders[0].points
    ]


def test_healthy_evidence_holds(healthy: Evidence) -> None:
    assert broken(healthy) == []


@pytest.mark.parametrize(("fault", "text"), [pytest.param(fault, text, id=name) for name, fault, text in FAULTS])
def test_a_fault_breaks_its_own_check(healthy: Evidence, fault: Fault, text: str) -> None:
    (line,) = broken(fault(healthy))
    assert line.startswith("FAILED  ") and text in line


def test_a_missing_execution_is_noticed(healthy: Evidence) -> None:
    assert "there are 2 executions" in broken(healthy, orders=3)[0]


def test_a_body_in_a_killed_worker_s_child_is_explained(healthy: Evidence) -> None:
    child = body(2, 1, number=999, pid=300, parent_pid=DEAD, outcome="")
    assert broken(replace(healthy, bodies=[*healthy.bodies, child])) == []


def test_many_exceptions_are_cut_short(healthy: Evidence) -> None:
    (line,) = broken(replace(healthy, findings=[f"finding {number}" for number in range(8)]))
    assert line.endswith("finding 4; and 3 more")


def test_the_table_says_how_often_each_body_began(healthy: Evidence) -> None:
    lines = table(healthy).splitlines()
    assert lines[0].split() == ["order", "execution", *[name for name in STEPS if name not in KINDS], "charged"]
    assert lines[2].split() == ["1", "completed", *"222221", "1", "x", "12.50"]
    assert lines[3].split() == ["2", "completed", *"111111", "1", "x", "12.50"]
    assert lines[-1].split() == ["bodies", "begun", *"333332", "2"]


def test_the_last_line_has_the_numbers(healthy: Evidence) -> None:
    assert summary(healthy, 12.34) == (
        "orders 2, steps recorded 12, workers killed in mid-step 5, bodies begun 17, ended 12, cut short 5,"
        " begun after their result was recorded 0, 12.3 s"
    )
