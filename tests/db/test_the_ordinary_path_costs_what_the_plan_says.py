"""Statements and commits of the ordinary path: as the plan states them on PostgreSQL, and their bounds on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction

from django_durable import Context, Execution, step, workflow
from django_durable.runtime.turn import run_turn
from tests.driving import USING, claim, connection, drain, lease_of, make_due

pytestmark = pytest.mark.django_db(transaction=True)


class Cost:
    def __init__(self) -> None:
        self.statements: list[str] = []
        self.commits = 0

    def execute(self, call: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        self.statements.append(str(sql))
        if connection.get_autocommit() and not str(sql).startswith("BEGIN"):
            self.commits += 1
        return call(sql, params, many, context)

    @property
    def work(self) -> int:
        """Statements without the transaction's own."""
        return len([s for s in self.statements if not s.startswith(("SAVEPOINT", "RELEASE", "BEGIN", "SELECT 1"))])


@contextmanager
def counted() -> Iterator[Cost]:
    """Count statements; one in autocommit commits itself, ``atomic`` commits once."""
    cost = Cost()
    original = connection._commit  # type: ignore[attr-defined]

    def commit() -> Any:
        cost.commits += 1
        return original()

    connection._commit = commit  # type: ignore[attr-defined]
    try:
        with connection.execute_wrapper(cost.execute):
            yield cost
    finally:
        connection._commit = original  # type: ignore[attr-defined]


@step
def nothing() -> None: ...


@workflow
def some_steps(ctx: Context, count: int) -> None:
    for _ in range(count):
        ctx.step(nothing)


@workflow
def one_sleep(ctx: Context) -> None:
    ctx.sleep(60)


@workflow
def one_wait(ctx: Context) -> None:
    ctx.wait_for_signal("go")


def on_postgres() -> bool:
    return connection.vendor == "postgresql"


def test_a_start_is_one_statement_with_or_without_a_key() -> None:
    connection.ensure_connection()
    for flow in (some_steps, some_steps.using(key="k")):
        with transaction.atomic(using=USING), counted() as cost:
            flow.start(1)
        assert cost.work == (1 if on_postgres() else 2)
        assert len(cost.statements) == (1 if on_postgres() else 4)
    with transaction.atomic(using=USING), counted() as cost:
        some_steps.using(key="k").start(1)
    assert cost.work <= 3


def test_a_claim_is_one_statement_and_one_commit_for_one_or_many() -> None:
    for count in (1, 5):
        for _ in range(count):
            some_steps.start(0)
        drainable = claim_cost(count)
        assert drainable.commits <= (1 if on_postgres() else 2)
        assert len(drainable.statements) <= (1 if on_postgres() else 3 + count)
        drain()


def claim_cost(count: int) -> Cost:
    from django_durable.runtime.claiming import claim_pass, terms_of

    terms = terms_of(limit=count, queues=("durable",))
    with counted() as cost:
        claims, _ = claim_pass(USING, terms)
    assert len(claims) == count
    for claimed in claims:
        run_turn(claimed, lease_of(claimed))
    return cost


def turn_cost(flow: Any, *args: Any) -> Cost:
    flow.start(*args)
    [claimed] = claim()
    with counted() as cost:
        run_turn(claimed, lease_of(claimed))
    return cost


def test_each_step_is_one_statement_and_one_commit_and_no_position_is_read_again() -> None:
    short, long = turn_cost(some_steps, 10), turn_cost(some_steps, 60)
    assert len(long.statements) - len(short.statements) == 50
    assert long.commits - short.commits == 50
    # load, ten appends, settle
    assert short.work == (12 if on_postgres() else 13)


def test_suspend_and_settle_cost_one_commit_and_few_statements() -> None:
    bound = 3 if on_postgres() else 7
    settle = turn_cost(some_steps, 0)
    assert settle.work - 1 <= (1 if on_postgres() else 3)
    sleep = turn_cost(one_sleep)
    assert sleep.work - 1 <= bound
    wait = turn_cost(one_wait)
    assert wait.work - 1 <= bound
    # one more commit than the write: the load of the journal stands in a snapshot of its own
    assert sleep.commits <= 2
    assert wait.commits <= 2


def test_a_wake_costs_one_commit_and_nothing_that_grows() -> None:
    execution = one_wait.start()
    drain()
    with counted() as cost:
        execution.signal("go", 1)
    assert cost.commits == 1
    assert cost.work <= (5 if on_postgres() else 6)


def test_replay_asks_nothing_per_position() -> None:
    execution = long_then_sleep.start()
    drain()
    make_due()
    [claimed] = claim()
    with counted() as cost:
        run_turn(claimed, lease_of(claimed))
    assert Execution.objects.locate(execution.pk).status == "completed"
    # load, the sleep's end, settle
    assert cost.work <= (3 if on_postgres() else 5)


@workflow
def long_then_sleep(ctx: Context) -> None:
    for _ in range(200):
        ctx.step(nothing)
    ctx.sleep(60)
