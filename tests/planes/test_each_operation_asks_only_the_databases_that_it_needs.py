"""Plane and spine apart: how many statements each operation sends to which of them, and zero where none is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from django.db import connections, transaction

from django_durable import Context, Execution, FatalError, step, workflow
from django_durable.dispatch.hints import renew
from django_durable.engine.claimed import Claimed
from django_durable.planes import plane_of
from django_durable.runtime.claiming import claim_pass, terms_of
from django_durable.runtime.turn import run_turn
from tests.driving import claim, drain, lease_of
from tests.planes.conftest import NORTH, SOUTH, SPINE

pytestmark = pytest.mark.usefixtures("planes")

OWN = ("SAVEPOINT", "RELEASE", "BEGIN", "ROLLBACK", "SHOW")
"""What belongs to a transaction, or is asked once a connection."""


@step
def nothing() -> None: ...


@step
def fails() -> None:
    raise FatalError("for good")


@workflow
def steps(ctx: Context, count: int) -> None:
    for _ in range(count):
        ctx.step(nothing)


@workflow
def naps(ctx: Context) -> None:
    ctx.sleep(60)


@workflow
def asks(ctx: Context) -> None:
    ctx.wait_for_signal("go")


@workflow
def breaks(ctx: Context) -> None:
    ctx.step(fails)


class Counted:
    """Statements by alias."""

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {alias: [] for alias in (SPINE, NORTH, SOUTH)}

    def note(self, execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if not str(sql).startswith(OWN):
            self.said[context["connection"].alias].append(str(sql))
        return execute(sql, params, many, context)

    @property
    def numbers(self) -> tuple[int, int]:
        """On the spine, on the plane; the other plane is never asked."""
        assert self.said[SOUTH] == []
        return len(self.said[SPINE]), len(self.said[NORTH])


@contextmanager
def counted() -> Iterator[Counted]:
    """Count from here on what is sent, with the registry of planes read already."""
    plane_of("ann")
    count = Counted()
    with ExitStack() as stack:
        for alias in (SPINE, NORTH, SOUTH):
            connections[alias].ensure_connection()
            stack.enter_context(connections[alias].execute_wrapper(count.note))
        yield count


def on_postgres() -> bool:
    return connections[SPINE].vendor == "postgresql"


def turn(flow: Any, *args: Any) -> tuple[Execution[Any], Counted]:
    """A claimed execution's one turn, counted."""
    execution = flow.using(tenant="ann").start(*args)
    [claimed] = claim()
    with counted() as count:
        run_turn(claimed, lease_of(claimed))
    return execution, count


def run(act: Callable[[], object]) -> tuple[int, int]:
    """What it costs."""
    with counted() as count:
        act()
    return count.numbers


def claims() -> list[Claimed]:
    """One pass of a worker that serves one queue."""
    return claim_pass(SPINE, terms_of(limit=1, queues=("durable",)))[0]


def test_a_start_asks_the_spine_where_and_tells_it_that() -> None:
    # Where the tenant lives, where the execution will live, its hint; the row, the intent on its way and gone.
    assert run(lambda: steps.using(tenant="ann").start(1)) == (3, 3 if on_postgres() else 4)


def test_a_rolled_back_start_publishes_nothing() -> None:
    def rolled_back() -> None:
        with transaction.atomic(using=NORTH):
            steps.using(tenant="ann").start(1)
            transaction.set_rollback(True, using=NORTH)

    assert run(rolled_back) == (2, 1 if on_postgres() else 2)


def test_a_claim_leases_on_the_spine_and_asks_the_plane_once() -> None:
    naps.using(tenant="ann").start()
    drain()  # whether the plane has its migrations is asked now and then
    steps.using(tenant="ann").start(1)
    # SQLite looks before it takes its one lock.
    assert run(claims) == ((1, 1) if on_postgres() else (2, 1))


def test_an_idle_worker_asks_no_plane() -> None:
    naps.using(tenant="ann").start()
    drain()
    # Turns of tenants, turns of the spine's own, steps elsewhere.
    assert run(claims) == (3, 0)


def test_a_renewal_asks_no_plane() -> None:
    steps.using(tenant="ann").start(1)
    [claimed] = claim()
    assert run(lambda: renew(SPINE, [(claimed.hint_id, claimed.token)], 30)) == (1, 0)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_step_asks_its_plane_once_and_the_spine_never(count: int) -> None:
    # The journal, the steps, the end; the spine hears of the end.
    assert turn(steps, count)[1].numbers == (1, 1 + count + 1)


def test_a_sleep_acknowledges_and_publishes() -> None:
    assert turn(naps)[1].numbers == (3, 4 if on_postgres() else 6)


def test_a_wait_without_a_time_only_acknowledges() -> None:
    assert turn(asks)[1].numbers == (1, 4 if on_postgres() else 5)


def test_a_signal_that_nobody_waits_for_asks_the_spine_nothing() -> None:
    waiting, _count = turn(asks)
    assert run(lambda: waiting.signal("other")) == (0, 2)


def test_a_signal_that_wakes_publishes() -> None:
    waiting, _count = turn(asks)
    assert run(lambda: waiting.signal("go")) == (2, 6)


def test_a_failure_is_settled_on_its_plane() -> None:
    assert turn(breaks)[1].numbers == (1, 3 if on_postgres() else 5)


def test_a_cancel_deletes_the_hint_and_leaves_a_note() -> None:
    waiting, _count = turn(asks)
    # Its parent first, the row, its undo steps, its end, what was pending, its note; its children,
    # and theirs that undo first.
    assert run(lambda: waiting.cancel(actor="op")) == (2, 10)
    assert run(lambda: waiting.cancel(actor="op")) == (0, 4)


def test_a_retry_publishes_and_leaves_a_note() -> None:
    broken, _count = turn(breaks)
    assert run(lambda: broken.retry(actor="op")) == (3, 17)


def test_a_pause_withdraws_and_a_resume_publishes() -> None:
    waiting, _count = turn(asks)
    assert run(lambda: waiting.pause(actor="op")) == (2, 4)
    assert run(lambda: waiting.resume(actor="op")) == (3, 8)


def test_what_only_reads_an_execution_asks_its_plane_alone() -> None:
    execution, _count = turn(steps, 1)
    assert run(lambda: execution.result(timeout=0)) == (0, 1)
    assert run(execution.history) == (0, 1)
    assert run(lambda: execution.value("key")) == (0, 1)
    assert run(lambda: Execution.objects.locate(execution.pk)) == (1, 1)


def test_work_without_a_tenant_asks_no_plane(settings: Any) -> None:
    settings.DURABLE = {**settings.DURABLE, "UNTENANTED": "control-plane"}

    def act() -> None:
        execution = asks.start()
        drain()
        execution.signal("go")
        drain()
        assert execution.result(timeout=0) is None
        steps.start(2).cancel(actor="op")

    assert run(act)[1] == 0
