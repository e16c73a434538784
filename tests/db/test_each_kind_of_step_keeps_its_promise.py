"""Transactional, at-most-once and plain steps; what a body may leave behind and how it may end."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, InterfaceError, OperationalError, transaction

from django_durable import Context, Execution, FatalError, Retry, RetryAfter, StepFailed, current_step, step, workflow
from django_durable.models import Checkpoint
from django_durable.runtime.lease import LeaseKeeper
from django_durable.runtime.turn import run_turn
from testproject.shop.models import Order
from tests.driving import USING, claim, connection, drain, lapse_leases, lease_of, make_due
from tests.services.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

ran: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@step(transactional=True)
def add_user(name: str, fail: bool = False) -> int:
    ran.append("add_user")
    user = get_user_model().objects.create_user(name)
    if fail:
        raise FatalError("no")
    return int(user.pk)


@step(transactional=True)
def breaks_a_constraint(name: str) -> None:
    get_user_model().objects.create_user(name)
    get_user_model().objects.create_user(name)


@step(transactional=True)
def meets_what_is_away(error: str) -> None:
    ran.append(error)
    if len(ran) > 20:
        raise FatalError("repeated without end")
    raise {"InterfaceError": InterfaceError, "OperationalError": OperationalError}[error](
        f"another server is {error}"
    )


@step(transactional=True)
def never_gets_its_lock() -> None:
    ran.append(1)
    raise OperationalError("database table is locked")


@step(transactional=True)
def loses_its_session(name: str) -> int:
    user = get_user_model().objects.create_user(name)
    ran.append(current_step().attempt)
    if len(ran) == 1:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    return int(user.pk)


@step(transactional=True)
def writes_elsewhere() -> None:
    from django.db import connections

    with connections["elsewhere"].cursor() as cursor:
        cursor.execute("CREATE TABLE x (id int)")


@step(at_most_once=True, retry=Retry(max_attempts=2, initial=0))
def once_each(key: str) -> str:
    ran.append(current_step().attempt)
    return key


@step
def leaves_a_transaction_open() -> str:
    transaction.set_autocommit(False, using=USING)
    Order.objects.create()
    return "stands"


@step
def leaves_a_block_open() -> str:
    transaction.atomic(using=USING).__enter__()
    Order.objects.create()
    return "stands"


@step(retry=Retry(max_attempts=3, initial=0))
def exits(kind: str) -> str:
    ran.append(kind)
    if len(ran) == 1:
        raise {"SystemExit": SystemExit, "MemoryError": MemoryError, "GeneratorExit": GeneratorExit}[kind]()
    return "came back"


@step(retry=Retry(max_attempts=3, initial=0))
def asks_for_time() -> str:
    ran.append(time.monotonic())
    if len(ran) == 1:
        raise RetryAfter(0.05, "busy")
    return "ok"


@step(retry=Retry(max_attempts=5, initial=0, give_up_on=(KeyError,)))
def gives_up() -> None:
    ran.append(1)
    raise KeyError("k")


@step(retry=Retry(max_attempts=3, initial=60, jitter=0.5))
def waits_long() -> str:
    ran.append(current_step().attempt)
    if len(ran) < 3:
        raise ValueError("not yet")
    return "at last"


@step(timeout=0.2, retry=Retry(max_attempts=2, initial=0))
def too_slow() -> str:
    ran.append(current_step().attempt)
    if len(ran) == 1:
        wait_until(lambda: current_step().cancelled, within=10)
        return "late"
    return "in time"


@step
def writes_lines() -> str:
    current_step().log("one", n=1)
    for number in range(200):
        current_step().log(f"line {number}")
    return current_step().idempotency_key


STEPS: dict[str, Any] = {
    "add_user": lambda ctx: ctx.step(add_user, "u"),
    "add_user_fails": lambda ctx: ctx.step(add_user, "u", fail=True),
    "constraint": lambda ctx: ctx.step(breaks_a_constraint, "u"),
    "InterfaceError": lambda ctx: ctx.step(meets_what_is_away, "InterfaceError"),
    "OperationalError": lambda ctx: ctx.step(meets_what_is_away, "OperationalError"),
    "no_lock": lambda ctx: ctx.step(never_gets_its_lock),
    "session": lambda ctx: ctx.step(loses_its_session, "u"),
    "elsewhere": lambda ctx: ctx.step(writes_elsewhere),
    "once_each": lambda ctx: ctx.step(once_each, "k"),
    "open": lambda ctx: ctx.step(leaves_a_transaction_open),
    "block": lambda ctx: ctx.step(leaves_a_block_open),
    "SystemExit": lambda ctx: ctx.step(exits, "SystemExit"),
    "MemoryError": lambda ctx: ctx.step(exits, "MemoryError"),
    "GeneratorExit": lambda ctx: ctx.step(exits, "GeneratorExit"),
    "RetryAfter": lambda ctx: ctx.step(asks_for_time),
    "gives_up": lambda ctx: ctx.step(gives_up),
    "waits_long": lambda ctx: ctx.step(waits_long),
    "too_slow": lambda ctx: ctx.step(too_slow),
    "lines": lambda ctx: ctx.step(writes_lines),
}


@workflow
def stepping(ctx: Context, name: str) -> Any:
    return STEPS[name](ctx)


def go(name: str) -> Execution[Any]:
    execution = stepping.start(name)
    drain()
    return Execution.objects.locate(execution.pk)


def test_a_transactional_step_commits_its_writes_with_its_checkpoint() -> None:
    execution = go("add_user")
    assert execution.output == get_user_model().objects.get().pk


def test_a_failed_transactional_step_leaves_no_writes_and_a_recorded_failure() -> None:
    execution = go("add_user_fails")
    assert execution.status == "failed"
    assert not get_user_model().objects.exists()
    assert execution.history()[0]["status"] == "failed"


def test_a_constraint_broken_in_a_transactional_step_is_its_failure() -> None:
    execution = go("constraint")
    assert execution.status == "failed"
    assert execution.error is not None
    assert execution.error["type"].endswith("IntegrityError")
    assert issubclass(IntegrityError, Exception)
    assert not get_user_model().objects.exists()


@pytest.mark.parametrize("error", ["InterfaceError", "OperationalError"])
def test_what_is_away_is_no_loss_of_the_planes_own_connection(error: str) -> None:
    execution = go(error)
    assert ran == [error]
    assert execution.error is not None
    assert execution.error["type"] == f"django.db.utils.{error}"


def test_contention_without_end_is_a_failure_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_durable.authoring.repetition.REPEATS", 3)
    execution = go("no_lock")
    assert len(ran) == 3
    assert execution.status == "failed"


if connection.vendor == "postgresql":

    def test_a_lost_connection_repeats_a_transactional_step_without_using_an_attempt() -> None:
        execution = go("session")
        assert ran == [1, 1]
        assert execution.output == get_user_model().objects.get().pk


def test_a_lost_owner_of_a_transactional_step_leaves_no_writes() -> None:
    stepping.start("add_user")
    [zombie] = claim()
    lapse_leases()
    [heir] = claim()
    run_turn(zombie, lease_of(zombie))
    assert not get_user_model().objects.exists()
    run_turn(heir, lease_of(heir))
    assert get_user_model().objects.count() == 1


def test_an_at_most_once_body_is_announced_first_and_an_interrupted_attempt_counts() -> None:
    execution = stepping.start("once_each")
    [claimed] = claim()
    Checkpoint.objects.create(
        execution_id=execution.pk,
        position=0,
        kind="step",
        name=once_each.name,
        status="pending",
        begun=1,
        lease_token=claimed.token,
    )
    lapse_leases()
    drain()
    assert ran == [2]
    done = Execution.objects.locate(execution.pk)
    assert done.output == "k"
    assert done.history()[0]["attempts"] == 2


def test_an_at_most_once_body_that_was_always_interrupted_fails_as_interrupted() -> None:
    execution = stepping.start("once_each")
    [claimed] = claim()
    Checkpoint.objects.create(
        execution_id=execution.pk,
        position=0,
        kind="step",
        name=once_each.name,
        status="pending",
        attempt=1,
        begun=2,
        lease_token=claimed.token,
    )
    lapse_leases()
    drain()
    failed = Execution.objects.locate(execution.pk)
    assert ran == []
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["type"] == "django_durable.errors.StepInterrupted"
    assert failed.error["attempts"] == 2


@pytest.mark.parametrize("name", ["open", "block"])
def test_a_transaction_that_a_body_leaves_open_is_rolled_back_and_its_result_stands(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "django_durable"):
        execution = go(name)
    assert execution.output == "stands"
    assert not Order.objects.exists()
    assert "left a transaction open" in caplog.text
    assert connection.get_autocommit()
    assert not connection.in_atomic_block


@pytest.mark.parametrize("kind", ["SystemExit", "MemoryError", "GeneratorExit"])
def test_an_end_of_the_process_is_no_outcome_of_the_step(kind: str) -> None:
    execution = go(kind)
    assert execution.status == "pending"
    assert execution.history() == []
    assert execution.recoveries == 1
    make_due()
    drain()
    done = Execution.objects.locate(execution.pk)
    assert done.output == "came back"
    assert done.history()[0]["attempts"] == 1


def test_retry_after_sets_the_next_time() -> None:
    assert go("RetryAfter").output == "ok"
    assert ran[1] - ran[0] >= 0.05


def test_give_up_on_ends_the_attempts() -> None:
    execution = go("gives_up")
    assert execution.status == "failed"
    assert len(ran) == 1


def test_a_long_delay_is_waited_without_a_worker_and_attempts_go_on_counting() -> None:
    execution = go("waits_long")
    assert execution.status == "waiting"
    assert execution.wake_at is not None
    for _ in range(2):
        make_due()
        drain()
    done = Execution.objects.locate(execution.pk)
    assert done.output == "at last"
    assert ran == [1, 2, 3]
    assert done.history()[0]["attempts"] == 3


def test_an_attempt_past_its_timeout_is_fenced_while_its_body_still_runs() -> None:
    execution = stepping.start("too_slow")
    [claimed] = claim()
    keeper = LeaseKeeper(30)
    lease = keeper.hold(claimed)
    try:
        run_turn(claimed, lease)
    finally:
        keeper.close()
    row = Execution.objects.locate(execution.pk)
    assert row.status in ("pending", "waiting")
    assert row.history()[0]["attempts"] == 1
    assert row.history()[0]["error"]["type"] == "django_durable.errors.StepTimeout"
    drain()
    assert Execution.objects.locate(execution.pk).output == "in time"
    assert ran == [1, 2]


def test_log_lines_are_kept_up_to_their_cap() -> None:
    execution = go("lines")
    assert execution.output == f"{execution.pk}:0"
    row = Checkpoint.objects.get()
    assert row.log.count("line") <= 100


def test_a_step_failure_replays_as_the_same_error() -> None:
    execution = twice.start()
    drain()
    make_due()
    drain()
    assert Execution.objects.locate(execution.pk).output == "builtins.KeyError 'k' 1"
    assert len(ran) == 1


@workflow
def twice(ctx: Context) -> str:
    try:
        ctx.step(gives_up)
    except StepFailed as error:
        told = f"{error.error_type} {error.message} {error.attempts}"
    ctx.sleep(60)
    return told
